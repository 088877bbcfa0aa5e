// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/consort-go/consort/canister"
)

// read returns the conversation in a file, which may not be there yet.
func read(path string) (history []canister.Canister, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	for c, err := range canister.Decode(file) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		history = append(history, c)
	}
	return history, nil
}
