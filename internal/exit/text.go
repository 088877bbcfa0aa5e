// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"errors"
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// Text returns the text of err for the user, or "" if everything was printed
// already.
func Text(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *Error:
		return Text(e.Err)
	case interface{ Unwrap() []error }:
		if joined := errors.Join(e.Unwrap()...); joined != nil && joined.Error() == err.Error() {
			return texts(e.Unwrap())
		}
	}
	return display.Text(strings.TrimRight(err.Error(), "\n"))
}

// texts returns the texts of errors that [errors.Join] has joined, one on each line.
func texts(joined []error) string {
	var all []string
	for _, part := range joined {
		if text := Text(part); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}
