// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"fmt"
	"io"

	"github.com/consort-go/consort/internal/contain"
)

// Error returns err with its text passed through clean, or err itself if clean
// changes nothing. errors.Is and errors.As find in the result the same errors as
// in err; an error found by errors.As has its original text. An error whose
// methods panic is replaced by its text; see [contain.Error].
func Error(err error, clean func(text string) string) error {
	if err == nil {
		return nil
	}
	err = contain.Error(err)
	text := err.Error()
	cleaned := clean(text)
	if cleaned == text {
		return err
	}
	return &cleanError{text: cleaned, err: err}
}

// cleanError hides an error whose text contains a secret. It has no Unwrap
// method, so that code that prints a chain cannot reach that text.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string        { return e.text }
func (e *cleanError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *cleanError) As(target any) bool   { return errors.As(e.err, target) }

// Format writes the cleaned text for every verb.
func (e *cleanError) Format(state fmt.State, verb rune) {
	if verb == 'q' || state.Flag('#') {
		fmt.Fprintf(state, "%q", e.text)
		return
	}
	_, _ = io.WriteString(state, e.text)
}
