// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// brokenSource opens connections with one method that panics.
type brokenSource struct {
	inner *ensembletest.Source
	in    string
}

func (s brokenSource) Open(ctx context.Context) (ensemble.Connection, error) {
	if s.in == "typed nil" {
		return (*brokenConnection)(nil), nil
	}
	c, err := s.inner.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &brokenConnection{c, s.in}, nil
}

type brokenConnection struct {
	inner ensemble.Connection
	in    string
}

func (c *brokenConnection) fail(method string) {
	if c.in == method {
		panic("boom in " + method)
	}
}

func (c *brokenConnection) List(ctx context.Context) (ensemble.Listing, error) {
	c.fail("List")
	return c.inner.List(ctx)
}
func (c *brokenConnection) Changed() <-chan struct{} { c.fail("Changed"); return c.inner.Changed() }
func (c *brokenConnection) Lost() <-chan struct{}    { c.fail("Lost"); return c.inner.Lost() }
func (c *brokenConnection) Err() error               { c.fail("Err"); return c.inner.Err() }
func (c *brokenConnection) Peer() ensemble.Peer      { c.fail("Peer"); return c.inner.Peer() }
func (c *brokenConnection) Late() int                { c.fail("Late"); return 1 }
func (c *brokenConnection) Close(ctx context.Context) error {
	defer c.fail("Close")
	return c.inner.Close(ctx)
}

// The goroutines of an ensemble call the methods of connections: what panics
// there would end the process.
func TestConnectionsThatPanic(t *testing.T) {
	for in, want := range map[string]string{ // why it cannot connect, or was lost
		"typed nil": "cannot connect: the source returned neither a connection nor an error",
		"List":      "cannot connect: listing the tools: panic: boom in List",
		"Changed":   "cannot connect: the connection panicked: boom in Changed",
		"Lost":      "cannot connect: the connection panicked: boom in Lost",
		"Err":       "the connection was lost: the connection panicked: boom in Err",
		"Peer":      "the connection was lost: gone",
		"Late":      "the connection was lost: gone",
		"Close":     "the connection was lost: gone",
	} {
		synctest.Test(t, func(t *testing.T) {
			source := brokenSource{ensembletest.NewSource(ensembletest.Echo()), in}
			e := ensemble.New("e", source, nil)
			other := ensemble.Local("other", ensembletest.Returns("say", "hello"))
			err := e.Connect(t.Context())
			if connects := !strings.HasPrefix(want, "cannot"); connects != (err == nil) {
				t.Fatalf("%s: Connect says %v", in, err)
			}
			source.inner.Lose(errors.New("gone"))
			synctest.Wait()
			if got := e.Snapshot(); got.LastError == nil || got.LastError.Error() != `ensemble "e": `+want {
				t.Errorf("%s: the last error is %v", in, got.LastError)
			}
			if text, failure := invoke(t.Context(), toolOf(t, other, "say")); failure != nil {
				t.Errorf("%s: the other ensemble says %q, %v", in, text, failure)
			}
			for _, e := range []*ensemble.Ensemble{e, other} {
				if err := e.Close(t.Context()); err != nil {
					t.Errorf("%s: Close: %v", in, err)
				}
			}
			if n := source.inner.Connections(); n != 0 {
				t.Errorf("%s: %d connections are left", in, n)
			}
		})
	}
}

func TestOptionsThatPanic(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	source := ensembletest.NewSource(ensembletest.Echo(), ensembletest.Panics("crashes", "sk-secret"))
	e := ensemble.New("e", source, &ensemble.Options{
		Logger: zap.New(core), Required: true,
		Redact: func(text string) string {
			if strings.Contains(text, "sk-secret") {
				panic("boom")
			}
			return text
		},
	})
	roster := newRoster(t, e)
	_, failure := invoke(t.Context(), toolOf(t, e, "crashes"))
	wantFailure(t, failure, invoker.ExecutionFailed, false)
	source.Fail(ensembletest.Open, 1, errors.New("sk-secret is wrong"))
	if err := e.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Connect(t.Context()); err == nil {
		t.Fatal("it connects")
	}
	if got := roster.Health().Ensembles[0].LastError; strings.Contains(got, "sk-secret") || got == "" {
		t.Errorf("the health says %q", got)
	}
	if logs.FilterMessageSnippet("panicked").FilterField(zap.String("ensemble", "e")).Len() == 0 {
		t.Errorf("the log says %v", logs.All())
	}
}

type brokenCore struct{ zapcore.Core }

func (brokenCore) Write(zapcore.Entry, []zapcore.Field) error { panic("no log") }
func (c brokenCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, c)
}
func (c brokenCore) With([]zapcore.Field) zapcore.Core { panic("no fields") }
func (c brokenCore) Enabled(zapcore.Level) bool        { return true }

func TestALoggerThatPanics(t *testing.T) {
	logger := zap.New(brokenCore{zapcore.NewNopCore()}, zap.ErrorOutput(zapcore.AddSync(io.Discard)))
	e := ensemble.New("e", ensembletest.NewSource(ensembletest.Returns("say", "hello")), &ensemble.Options{Logger: logger})
	if _, failure := invoke(t.Context(), toolOf(t, e, "say")); failure != nil {
		t.Error(failure)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The functions of a call belong to its caller, and a source calls them from
// goroutines of its own.
func TestFunctionsOfACallThatPanic(t *testing.T) {
	elsewhere := func(f func()) {
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		<-done
	}
	var person, model error
	tool, err := invoker.Raw(invoker.Definition{Name: "t"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		elsewhere(func() { call.Report(invoker.Progress{Done: 1}) })
		elsewhere(func() { call.Note(invoker.LogEntry{Level: "info", Data: json.RawMessage(`1`)}) })
		elsewhere(func() { call.Hold()() })
		elsewhere(func() { _, person = call.Ask(ctx, &invoker.ElicitRequest{}) })
		elsewhere(func() { _, model = call.Sample(ctx, &invoker.SampleRequest{}) })
		return invoker.Output{Content: canister.Texts("done")}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := ensemble.Local("e", tool)
	defer e.Close(t.Context())
	for _, pause := range []func() func(){
		func() func() { panic("pause") },
		func() func() { return func() { panic("resume") } },
		func() func() { return nil },
	} {
		output, err := toolOf(t, e, "t").Invoke(t.Context(), &invoker.Call{
			Progress: func(invoker.Progress) { panic("progress") },
			Log:      func(invoker.LogEntry) { panic("log") },
			Pause:    pause,
			Person: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				panic("person")
			},
			Model: func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
				panic("model")
			},
		})
		if err != nil || canister.TextOf(output.Content) != "done" {
			t.Errorf("%v, %v", output, err)
		}
		if person == nil || model == nil || !strings.HasSuffix(person.Error(), "panicked: person") || !strings.HasSuffix(model.Error(), "panicked: model") {
			t.Errorf("the person says %v, the model %v", person, model)
		}
	}
}

// nilError is the classic mistake: a nil pointer of it, returned as an error.
type nilError struct{ reason string }

func (e *nilError) Error() string { return e.reason }

// nilTool is an invoker of the program's own that makes it.
type nilTool struct{ name string }

func (t *nilTool) Definition() *invoker.Definition { return &invoker.Definition{Name: t.name} }
func (t *nilTool) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, (*nilError)(nil)
}

func TestErrorsOfSourcesWhoseMethodsPanic(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	source := ensembletest.NewSource(&nilTool{"t"})
	e := ensemble.New("e", source, &ensemble.Options{Logger: zap.New(core)})
	defer e.Close(t.Context())
	_, failure := invoke(t.Context(), toolOf(t, e, "t"))
	wantFailure(t, failure, invoker.ExecutionFailed, false)
	if err := e.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.Fail(ensembletest.Open, 1, (*nilError)(nil))
	err := e.Connect(t.Context())
	if want := `ensemble "e": cannot connect: a nil *ensemble_test.nilError without a text`; err == nil ||
		!strings.HasPrefix(err.Error(), want) || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if logs.FilterMessage("a call failed").Len() != 1 {
		t.Errorf("the log says %v", logs.All())
	}
}

// undefinable has a definition that panics.
type undefinable struct{ invoker.Invoker }

func (*undefinable) Definition() *invoker.Definition { panic("no definition") }

func TestOneToolThatCannotBeListed(t *testing.T) {
	malformed := func(name string, def invoker.Definition) invoker.Invoker {
		def.Name = name
		return malformedTool{def}
	}
	for _, fill := range []map[string]string{nil, {"a": "b"}} {
		e := ensemble.New("e", ensemble.LocalSource(
			(*nilTool)(nil), &undefinable{}, nil, ensembletest.Echo(),
			malformed("input", invoker.Definition{InputSchema: json.RawMessage(`{{`)}),
			malformed("list", invoker.Definition{InputSchema: json.RawMessage(`[]`)}),
			malformed("output", invoker.Definition{InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{"a"`)}),
			malformed("metadata", invoker.Definition{Metadata: canister.Fields{"k": json.RawMessage(`x`)}}),
			malformed("none", invoker.Definition{InputSchema: json.RawMessage(` null `)}),
		), &ensemble.Options{Fill: fill})
		wantNames(t, namesOf(t, e), "e__echo", "e__none")
		want := map[string]string{
			"it is a nil *ensemble_test.nilTool":                                                 "",
			"its method Definition panicked: no definition (it is a *ensemble_test.undefinable)": "",
			"it has no definition":                                                               "",
			"its input schema is not JSON":                                                       "input",
			"its input schema is not a JSON object":                                              "list",
			"its output schema is not JSON":                                                      "output",
			`its metadata "k" is not JSON`:                                                       "metadata",
		}
		aside := e.Snapshot().Aside
		for _, a := range aside {
			if tool, ok := want[a.Reason]; !ok || tool != a.Tool {
				t.Errorf("set aside is %q because %q", a.Tool, a.Reason)
			}
		}
		if len(aside) != len(want) {
			t.Errorf("set aside are %q", aside)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

type malformedTool struct{ def invoker.Definition }

func (m malformedTool) Definition() *invoker.Definition { return &m.def }
func (malformedTool) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, nil
}
