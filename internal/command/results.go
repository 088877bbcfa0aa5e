// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/shown"
)

// document writes v to standard output as one indented JSON document.
func (s *screen) document(v any) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing the JSON document: %w", err)
	}
	s.resultJSON(b.String())
	return s.failure()
}

// printText writes text from a server to standard output.
func (s *screen) printText(text string) {
	if s.results.terminal {
		text = shown.Text(text)
	}
	s.result(strings.TrimRight(text, "\n") + "\n")
}

// canisters writes canisters to standard output, one line of JSON for each.
func (s *screen) canisters(all ...canister.Canister) error {
	for _, one := range all {
		form, err := canister.Marshal(one)
		if err != nil {
			return fmt.Errorf("a %s: %w", one.Kind(), err)
		}
		s.resultJSON(string(form) + "\n")
	}
	return s.failure()
}

// put writes text to standard output: sanitized by [shown.Text] on a terminal, and
// unchanged for programs.
func (s *screen) put(text string) {
	if s.results.terminal {
		text = shown.Text(text)
	}
	s.result(text)
}
