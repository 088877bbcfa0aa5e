// SPDX-License-Identifier: Apache-2.0

// Package programerror keeps the texts of errors of the program's own functions from the readers of
// a conversation. Such a text can have secrets of the program, which no conversation knows and
// redacts.
package programerror

import (
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/contain"
)

// Error is an error, or a panic, of a function of the program.
type Error struct {
	What  string // what failed, without the cause
	Cause error
}

// Error implements error. The text has the cause.
func (e *Error) Error() string {
	if p, ok := e.Cause.(*contain.Panic); ok && strings.HasSuffix(e.What, p.What+" panicked") {
		return e.What + ": " + contain.Text(p.Value)
	}
	return fmt.Sprintf("%s: %v", e.What, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// PublicText returns the text of an error for the readers of a conversation.
func PublicText(err error) string {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.What + "; the log of the program says why"
	}
	return err.Error()
}
