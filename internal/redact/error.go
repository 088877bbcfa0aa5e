// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"fmt"
	"io"

	"github.com/consort-go/consort/internal/contain"
)

// Error returns err with its text passed through clean. It is err itself if
// there is nothing to take out. errors.Is and errors.As find in the result what
// they find in err: a target of the latter has its own text. An error whose
// methods panic is replaced by its text, see [contain.Error].
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

// cleanError stands before an error whose text holds a secret. It has no
// Unwrap, so that nothing that prints a chain comes upon that text.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string        { return e.text }
func (e *cleanError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *cleanError) As(target any) bool   { return errors.As(e.err, target) }

// Format writes the text, whatever the verb.
func (e *cleanError) Format(state fmt.State, verb rune) {
	if verb == 'q' || state.Flag('#') {
		fmt.Fprintf(state, "%q", e.text)
		return
	}
	_, _ = io.WriteString(state, e.text)
}
