// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

const secret = `hunter2-"hunter2"`

// allContents has the secret in every place of every content, and in bytes
// that show it in base64.
func allContents() []canister.Content {
	quoted, _ := json.Marshal(secret)
	extra := canister.Extra{Metadata: canister.Fields{secret: quoted}, Unknown: canister.Fields{secret: quoted}}
	return []canister.Content{
		canister.TextContent{Text: "<" + secret + ">", Extra: extra},
		canister.ImageContent{URL: "http://x/" + secret, Extra: extra},
		canister.AudioContent{Data: []byte{1}, MIME: secret, Extra: extra},
		canister.ResourceContent{URI: secret, MIME: secret, Text: secret, Extra: extra},
		canister.ResourceContent{URI: "x", Blob: []byte(secret), Extra: extra},
		canister.ResourceContent{URI: "y", Blob: []byte{}, Extra: extra},
		canister.LinkContent{URI: secret, Name: secret, Title: secret, Description: secret, MIME: secret, Extra: extra},
		canister.StructuredContent{JSON: json.RawMessage(`{"a":["\u0068unter2-\"hunter2\"",1.50]}`), Extra: extra},
	}
}

// leaky is a source that cannot be opened, and says too much about it.
type leaky struct{}

func (leaky) Open(context.Context) (ensemble.Connection, error) {
	return nil, errors.New("it printed " + secret)
}

// leakyModel cannot take the tool "bad", and fails at its end.
type leakyModel struct {
	converse.Model
	exchanges int
}

func (m *leakyModel) Screen(definition *invoker.Definition) error {
	if strings.HasSuffix(definition.Name, "bad") {
		return errors.New("it says " + secret)
	}
	return nil
}

func (m *leakyModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if m.exchanges++; m.exchanges < 3 {
		return m.Model.Exchange(ctx, request)
	}
	return func(yield func(converse.ModelEvent, error) bool) {
		fault := &converse.ModelError{Message: "got " + secret, Code: secret, RequestID: secret, Status: 500, Err: fmt.Errorf("by %s: %w", secret, errLeaky)}
		if yield(converse.Retry{Attempt: 1, Err: fault}, nil) {
			yield(nil, fault)
		}
	}
}

var errLeaky = errors.New("leaky")

// The secret is said in every way that a conversation knows, and shows nowhere.
func TestRedact(t *testing.T) {
	metadata, _ := json.Marshal(map[string]string{secret: secret})
	spill := fn("spill", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		call.Progress(invoker.Progress{Done: 1, Message: secret})
		return invoker.Output{Content: allContents(), Metadata: canister.Fields{"m": metadata}}, nil
	})
	fail := fn("fail", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, &invoker.Failure{Code: invoker.NotFound, Content: allContents(), Metadata: canister.Fields{"m": metadata}}
	})
	crash := fn("crash", func(context.Context, *invoker.Call) (invoker.Output, error) { panic(secret) })
	roster, err := ensemble.NewRoster(ensemble.Local("local", spill, fail, crash, echo("bad"), echo("echo")), ensemble.New("leaky", leaky{}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	model := &leakyModel{Model: conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("spill", ""), call("fail", ""), call("crash", ""), call("bad", "")}},
		conversetest.Line{Calls: []conversetest.Call{call("echo", "")}},
	)}
	talk := converse.New(model, roster, &converse.Options{
		Redact: redact.New(secret),
		Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
			if ask.Tool == "echo" {
				return converse.Change(json.RawMessage(`{"key":"hunter2-\"hunter2\""}`)), nil
			}
			return converse.Allow(), nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	var failed error
	for event, err := range talk.Send(ctx, canister.Text("go")) {
		if failed = err; err != nil {
			fmt.Fprintf(&out, "%v\n%+v\n%#v\n", err, err, err)
			continue
		}
		line, err := eventjson.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n%+v\n%#v\n", line, event, event)
	}
	for _, c := range talk.History() {
		line, err := canister.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", line)
	}
	for line := range strings.Lines(out.String()) {
		for _, form := range []string{"hunter2", "aHVudGVyMi0i", "68756e746572", "0x68, 0x75, 0x6e, 0x74", "104 117 110 116"} {
			if strings.Contains(line, form) {
				t.Errorf("%s is in %s", form, line)
			}
		}
	}
	var modelError *converse.ModelError
	if !errors.As(failed, &modelError) || modelError.Status != 500 || !errors.Is(failed, errLeaky) || strings.Contains(modelError.Err.Error(), "hunter2") {
		t.Errorf("the error is %#v", failed)
	}
	for _, want := range []string{
		`"event":"turn_started"`, `"reason":"it says [secret]"`, `it printed [secret]`, // aside and away
		`"message":"[secret]"`, `{"a":["[secret]",1.50]}`, `set aside: it says [secret]`, `changed arguments: {"key":"[secret]"}`,
		`"error":"model: got [secret] (status 500, code [secret], request [secret])"`,
	} {
		if !strings.Contains(strings.ReplaceAll(out.String(), `\"`, `"`), want) {
			t.Errorf("%s is nowhere", want)
		}
	}
	sound(t, talk.History())
}

// What would be cut in two is taken out before.
func TestRedactBeforeCutting(t *testing.T) {
	roster := newRoster(t, fn("spill", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(strings.Repeat("x", 90) + secret)}, nil
	}))
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("spill", "")}}, conversetest.Line{Text: "done"})
	talk := converse.New(script, roster, &converse.Options{Redact: redact.New(secret), Limits: converse.Limits{ResultBytes: 95}})
	play(t, talk, "go")
	if text := canister.TextOf(results(talk.History())[0].Content); strings.Contains(text, "hunt") || !strings.Contains(text, "[cut: ") {
		t.Errorf("the result is %s", text)
	}
}
