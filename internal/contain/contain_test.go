// SPDX-License-Identifier: Apache-2.0

package contain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/contain"
)

type ownError struct{ reason string }

func (e *ownError) Error() string { return e.reason }

type badUnwrap struct{ inner error }

func (*badUnwrap) Error() string   { return "fine" }
func (e *badUnwrap) Unwrap() error { return e.inner }

type badIs struct{}

func (badIs) Error() string     { return "fine" }
func (badIs) Is(err error) bool { return err.(*ownError).reason == "" }

type badAs struct{}

func (badAs) Error() string { return "fine" }
func (badAs) As(any) bool   { panic("as") }

type circle struct{}

func (circle) Error() string   { return "round" }
func (c circle) Unwrap() error { return c }

// evil panics with itself.
type evil struct{}

func (e evil) Error() string { panic(e) }

type many []error // values of it cannot be compared

func (many) Error() string     { return "many" }
func (m many) Unwrap() []error { return m }

type badString struct{ s *string }

func (b badString) String() string { return *b.s }

func TestText(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "<nil>"},
		{"plain", "plain"},
		{7, "7"},
		{io.EOF, "EOF"},
		{
			(*ownError)(nil),
			"a nil *contain_test.ownError without a text (its method Error panicked: runtime error: invalid memory address or nil pointer dereference)",
		},
		{evil{}, "contain_test.evil without a text (its method Error panicked)"},
		{badString{}, "contain_test.badString without a text (its method String panicked: runtime error: invalid memory address or nil pointer dereference)"},
	} {
		if got := contain.Text(test.value); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestErrorsThatCanBeUsedStay(t *testing.T) {
	for _, err := range []error{
		nil, io.EOF, &ownError{"x"}, context.Canceled, fmt.Errorf("a: %w", io.EOF),
		errors.Join(io.EOF, nil, &ownError{"y"}), many{io.EOF, many{io.ErrClosedPipe}}, &badUnwrap{io.EOF},
	} {
		if !contain.Usable(err) {
			t.Errorf("%v cannot be used", err)
			continue
		}
		got := contain.Error(err)
		if fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", err, err) || err != nil && errors.Is(err, io.EOF) != errors.Is(got, io.EOF) {
			t.Errorf("%#v became %#v", err, got)
		}
	}
}

func TestErrorsThatPanicAreReplaced(t *testing.T) {
	for name, err := range map[string]error{
		"nil pointer":   (*ownError)(nil),
		"nil Unwrap":    (*badUnwrap)(nil),
		"Is":            badIs{},
		"As":            badAs{},
		"without end":   circle{},
		"evil":          evil{},
		"wrapped":       &badUnwrap{&badUnwrap{(*ownError)(nil)}},
		"joined":        errors.Join(io.EOF, badIs{}),
		"a wide circle": many{many{io.EOF}, many{circle{}}},
	} {
		got := contain.Error(err)
		if contain.Usable(err) || !contain.Usable(got) || got.Error() == "" {
			t.Errorf("%s: still %#v", name, got)
		}
		if text := contain.Text(err); got.Error() != text {
			t.Errorf("%s: its text is %q, want %q", name, got, text)
		}
	}
}

func TestAs(t *testing.T) {
	own := &ownError{"x"}
	for name, test := range map[string]struct {
		err  error
		want *ownError
	}{
		"itself":              {own, own},
		"before what panics":  {errors.Join(own, (*badUnwrap)(nil)), own},
		"behind what panics":  {errors.Join((*badUnwrap)(nil), own), nil},
		"not there":           {io.EOF, nil},
		"in a tree of no end": {many{circle{}, own}, nil},
		"wrapped":             {many{io.EOF, &badUnwrap{own}}, own},
	} {
		if got, ok := contain.As[*ownError](test.err); got != test.want || ok != (test.want != nil) {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

func TestIsNil(t *testing.T) {
	for i, value := range []any{nil, (*ownError)(nil), (func())(nil), map[string]int(nil), []int(nil), (chan int)(nil)} {
		if !contain.IsNil(value) {
			t.Errorf("value %d is not nil", i)
		}
	}
	for _, value := range []any{0, "", ownError{}, &ownError{}, []int{}} {
		if contain.IsNil(value) {
			t.Errorf("%#v is nil", value)
		}
	}
}

func TestCall(t *testing.T) {
	if err := contain.Call("it", func() {}); err != nil {
		t.Error(err)
	}
	err := contain.Call("the function F", func() { panic("boom") })
	var panicked *contain.Panic
	if !errors.As(err, &panicked) || err.Error() != "the function F panicked: boom" || !strings.Contains(string(panicked.Stack), "TestCall") {
		t.Errorf("%v, %+v", err, panicked)
	}
	if err := contain.Call("it", func() { panic(fmt.Errorf("a: %w", io.EOF)) }); !errors.Is(err, io.EOF) {
		t.Errorf("%v does not wrap what it panicked with", err)
	}
	if err := contain.Call("it", func() { panic(evil{}) }); !contain.Usable(err) {
		t.Errorf("the error of an evil panic cannot be used: %s", contain.Text(err))
	}
}
