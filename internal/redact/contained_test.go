// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

func TestAPanicOfRedactWithholdsTheText(t *testing.T) {
	var panics []error
	clean := redact.Contained(func(text string) string {
		if strings.Contains(text, "secret") {
			panic("boom")
		}
		return strings.ToUpper(text)
	}, func(err error) { panics = append(panics, err) })
	if got := clean("plain"); got != "PLAIN" {
		t.Errorf("%q", got)
	}
	if got := clean("my secret"); got != redact.Withheld {
		t.Errorf("%q", got)
	}
	if len(panics) != 1 || panics[0].Error() != "the function Redact panicked: boom" {
		t.Errorf("told of %v", panics)
	}
	if redact.Contained(nil, nil) != nil {
		t.Error("nothing became a function")
	}
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestAnErrorWithoutATextIsCleaned(t *testing.T) {
	got := redact.Error((*nilError)(nil), strings.ToUpper)
	if text := got.Error(); !strings.HasPrefix(text, "A NIL *REDACT_TEST.NILERROR") {
		t.Errorf("%q", text)
	}
	if errors.Is(got, errors.ErrUnsupported) {
		t.Error("it is what it is not")
	}
}
