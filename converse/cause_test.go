// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// Programs can show people how a server ended that took a call with it: once,
// without secrets, and without the model being told.
func TestInvocationCompletedHasTheCause(t *testing.T) {
	const secret = "hunter2-hunter2"
	lost := &ensemble.ProcessError{Server: "weather", Exit: "exit status 3", Stderr: "KeyError: " + secret}
	dies := fn("dies", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "The connection was lost.", Cause: lost}
	})
	says := fn("says", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.Unavailable, "The server is away: %w", lost)
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("dies", "{}"), call("says", "{}"), call("echo", "{}")}},
		conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, dies, says, echo("echo")), &converse.Options{Redact: redact.New(secret)})
	causes := map[string]string{}
	for _, e := range play(t, talk, "go") {
		if done, ok := e.(converse.InvocationCompleted); ok {
			causes[done.Invocation.Name] = done.Cause
			line, err := eventjson.Marshal(done)
			if err != nil || strings.Contains(string(line), `"cause":`) != (done.Cause != "") {
				t.Errorf("MarshalEvent: %v: %s", err, line)
			}
		}
	}
	want := `server "weather" exited: exit status 3; stderr: KeyError: ` + redact.New(secret)(secret)
	for name, cause := range causes {
		switch {
		case strings.HasSuffix(name, "dies") && cause != want:
			t.Errorf("the cause is %q, want %q", cause, want)
		case !strings.HasSuffix(name, "dies") && cause != "":
			t.Errorf("%s has the cause %q, although the model was told so, or nothing is wrong", name, cause)
		}
	}
	if len(causes) != 3 {
		t.Errorf("%d calls, want 3", len(causes))
	}
	if text := canister.TextOf(results(talk.History())[0].Content); strings.Contains(text, "KeyError") {
		t.Errorf("the model is told %q", text)
	}
}
