// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// nilError is the classic mistake: a nil pointer of it, returned as an error.
type nilError struct{ reason string }

func (e *nilError) Error() string { return e.reason }

// nilWrapper has the mistake in Unwrap.
type nilWrapper struct{ inner error }

func (*nilWrapper) Error() string   { return "wrapped" }
func (e *nilWrapper) Unwrap() error { return e.inner }

// endless wraps itself.
type endless struct{}

func (endless) Error() string   { return "endless" }
func (e endless) Unwrap() error { return e }

const nilText = "a nil *invoker_test.nilError without a text (its method Error panicked: runtime error: invalid memory address or nil pointer dereference)"

// unusableErrors are errors whose methods panic, with the text of their failure and of
// their audit record.
var unusableErrors = map[string]struct {
	err           error
	says, audited string
}{
	"a nil pointer":             {(*nilError)(nil), "EXECUTION_FAILED: The tool ran and failed.", nilText},
	"a nil pointer with Unwrap": {(*nilWrapper)(nil), "EXECUTION_FAILED: The tool ran and failed.", "wrapped"},
	"without end":               {endless{}, "EXECUTION_FAILED: The tool ran and failed.", "endless"},
	"the cause of a failure": {
		&invoker.Failure{Code: invoker.NotFound, Message: "No such task.", Cause: (*nilError)(nil)}, "NOT_FOUND: No such task.", nilText,
	},
	"the cause of an empty one": {&invoker.Failure{Cause: (*nilError)(nil)}, "EXECUTION_FAILED: The tool failed without saying why.", nilText},
	"joined behind a failure": {
		errors.Join(invoker.Failf(invoker.Conflict, "It is taken."), (*nilWrapper)(nil)), "CONFLICT: It is taken.", "CONFLICT: It is taken.\nwrapped",
	},
	"formatted":                    {invoker.Failf(invoker.NotFound, "No: %w", error((*nilError)(nil))), "NOT_FOUND: No: <nil>", nilText},
	"wrapped around a nil failure": {fmt.Errorf("a: %w, b: %w", error((*nilError)(nil)), error((*invoker.Failure)(nil))), "EXECUTION_FAILED", "a: <nil>, b:"},
}

// The goroutines that ask for the text of an error are not the tool's: there its
// panic would end the process.
func TestErrorsWhoseMethodsPanic(t *testing.T) {
	for name, test := range unusableErrors {
		for _, run := range []struct {
			how string
			err func() error
		}{
			{"AsFailure", func() error { return test.err }},
			{"typed", func() error {
				tool, err := invoker.New("t", "", func(context.Context, struct{}) (string, error) { return "ok", test.err }, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tool.Invoke(t.Context(), nil)
				return err
			}},
			{"inline", func() error {
				tool, err := invoker.Raw(invoker.Definition{Name: "t"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
					return invoker.Output{}, test.err
				}, &invoker.RawOptions{Inline: true})
				if err != nil {
					t.Fatal(err)
				}
				_, err = tool.Invoke(t.Context(), nil)
				return err
			}},
		} {
			err := run.err()
			var record audit.Record
			record.Ended(nil, err)
			failure := invoker.AsFailure(err)
			if got := failure.Error(); !strings.HasPrefix(got, test.says) || !strings.Contains(record.Error, test.audited) {
				t.Errorf("%s, %s: %q, and the record says %q", name, run.how, got, record.Error)
			}
			if errors.Is(failure, io.EOF) || run.how != "AsFailure" && errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: it is what it is not", name, run.how)
			}
		}
	}
}

type evilPanic struct{}

func (evilPanic) Error() string { panic(evilPanic{}) }

func TestAPanicWithAnErrorWhoseMethodsPanic(t *testing.T) {
	for _, value := range []any{(*nilError)(nil), (*nilWrapper)(nil), evilPanic{}, endless{}} {
		tool, err := invoker.New("t", "", func(context.Context, struct{}) (string, error) { panic(value) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tool.Invoke(t.Context(), nil)
		var record audit.Record
		record.Ended(nil, err)
		if record.Code != string(invoker.Internal) || errors.Is(err, io.EOF) || record.Error == "" {
			t.Errorf("%T: %+v", value, record)
		}
	}
}

// unread panics when it is read, and unwritten when it is written.
type unread struct{ S string }

func (*unread) UnmarshalJSON([]byte) error { panic("unread") }

type unwritten struct{ S string }

func (unwritten) MarshalJSON() ([]byte, error) { panic("unwritten") }

func TestMethodsOfArgumentsAndResultsThatPanic(t *testing.T) {
	ran := 0
	reads, err := invoker.New("reads", "", func(context.Context, struct {
		A unread `json:"a"`
	}) (string, error) {
		ran++
		return "", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = reads.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{"a":1}`)})
	var panicked *invoker.Panic
	if failure := invoker.AsFailure(err); failure.Code != invoker.Internal || !strings.HasPrefix(failure.Message, "The tool was not run: ") ||
		!errors.As(err, &panicked) || panicked.Value != "unread" || ran > 0 {
		t.Errorf("%v, and the function ran %d times", err, ran)
	}
	writes, err := invoker.New("writes", "", func(context.Context, struct{}) (unwritten, error) { return unwritten{}, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = writes.Invoke(t.Context(), nil)
	if failure := invoker.AsFailure(err); failure.Code != invoker.Internal || !strings.HasPrefix(failure.Message, "The tool ran, but ") ||
		failure.Cause.Error() != "a method of the result panicked: unwritten" {
		t.Errorf("%v, because %v", err, failure.Cause)
	}
}

type undescribed struct{}

func (undescribed) JSONSchema() string { panic("no schema") }

func TestAPanicOfJSONSchemaIsAnErrorOfNew(t *testing.T) {
	_, err := invoker.New("t", "", func(context.Context, struct{ A undescribed }) (string, error) { return "", nil }, nil)
	want := `tool "t": the argument type: the type invoker_test.undescribed provides no schema: the method JSONSchema panicked: no schema`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A trusted value is looked at on the goroutines of the runtime: where calls are
// recorded, and where they are told to logs.
func TestATrustedValueWhoseMethodsPanic(t *testing.T) {
	written := invoker.NewTrusted[unwritten]("written")
	ctx := invoker.WithTrusted(t.Context(), written.Value(unwritten{}), invoker.TrustedJSON("read", json.RawMessage(`1`)))
	for _, value := range invoker.TrustedFrom(ctx)[1:] {
		if text, err := value.Reveal(); err == nil {
			t.Errorf("it has the JSON form %s", text)
		}
	}
	if value, ok := invoker.NewTrusted[unread]("read").From(ctx); ok {
		t.Errorf("it was read: %v", value)
	}
}

func TestRulesForNoTool(t *testing.T) {
	for _, inv := range []invoker.Invoker{nil, (*nilTool)(nil)} {
		_, fill := invoker.Fill(inv, nil)
		_, withhold := invoker.Withhold(inv, map[string]string{"a": "b"})
		_, require := invoker.Require(inv)
		for _, err := range []error{fill, withhold, require} {
			if err == nil || err.Error() != "the invoker is nil" {
				t.Errorf("%T: %v", inv, err)
			}
		}
	}
}

type nilTool struct{ name string }

func (t *nilTool) Definition() *invoker.Definition { return &invoker.Definition{Name: t.name} }
func (t *nilTool) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, nil
}
