// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// shelf is a sink that keeps records in memory.
type shelf struct {
	mu      sync.Mutex
	records []audit.Record
}

func (s *shelf) Record(_ context.Context, record *audit.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, *record)
	return nil
}

// of returns the one record of an invocation.
func (s *shelf) of(t testing.TB, id string) audit.Record {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []audit.Record
	for _, record := range s.records {
		if record.Invocation == id {
			found = append(found, record)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the invocation %s has %d records, want 1", id, len(found))
	}
	return found[0]
}

// audited checks that each result of a history has one record, which says the
// same, and that there are no others.
func audited(t testing.TB, s *shelf, talk *converse.Conversation) {
	t.Helper()
	asked := map[string]canister.Invocation{}
	count := 0
	for _, c := range talk.History() {
		switch c := c.(type) {
		case canister.Invocation:
			asked[c.ID] = c
		case canister.Result:
			count++
			bytes := 0
			for _, content := range c.Content {
				bytes += len(canister.TextOf([]canister.Content{content}))
			}
			record, invocation := s.of(t, c.Invocation), asked[c.Invocation]
			code := c.Code
			if code == "" {
				code = audit.OK
			}
			if record.Code != code || record.Asker != "model" || record.Conversation != talk.ID() || !record.Time.Equal(invocation.Time) ||
				record.Bytes != bytes || (code == audit.OK) != (record.Error == "") {
				t.Errorf("the record of\n%+v is\n%+v", c, record)
			}
		}
	}
	if len(s.records) != count {
		t.Errorf("there are %d records and %d results", len(s.records), count)
	}
}

var userID = invoker.NewTrusted[int64]("user_id")

// tasks is a tool that needs to know whose tasks.
func tasks(t testing.TB) invoker.Invoker {
	type query struct {
		Title string `json:"title,omitempty"`
	}
	tool, err := invoker.New("tasks", "", func(ctx context.Context, q query) (string, error) {
		if _, ok := userID.From(ctx); !ok {
			return "", errors.New("nobody is there")
		}
		return "none", nil
	}, &invoker.Options{Needs: []invoker.Need{userID}})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestEveryInvocationIsAudited(t *testing.T) {
	fails := fn("fails", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, errors.New("dial tcp 10.0.0.1: refused")
	})
	panics := fn("panics", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("at the disco") })
	brief := ensemble.New("brief", ensemble.LocalSource(waiter("slow")), &ensemble.Options{CallTimeout: 50 * time.Millisecond})
	roster, err := ensemble.NewRoster(ensemble.Local("local", echo("echo"), fails, panics, tasks(t)), brief)
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{
		call("echo", `{"a": 1}`), call("nobody", `{}`), call("echo", `{"a":`), call("echo", `{"deny":true}`),
		call("fails", ""), call("panics", `{}`), {Name: "brief__slow", Arguments: `{}`}, call("tasks", `{"User_ID":7}`), call("tasks", `{}`),
		call("echo", `{"change":true}`),
	}}, conversetest.Line{Text: "done"})
	var s shelf
	core, logs := observer.New(zapcore.WarnLevel)
	talk := converse.New(script, roster, &converse.Options{
		ID:      "K7",
		Audit:   audit.New(&s, &audit.Options{Identity: []string{"user_id"}}),
		Trusted: []invoker.Value{userID.Value(42)},
		Logger:  zap.New(core),
		Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
			if strings.Contains(string(ask.Arguments), "deny") {
				return converse.Deny("not today"), nil
			}
			if strings.Contains(string(ask.Arguments), "change") {
				return converse.Change(json.RawMessage(`{"changed":1}`)), nil
			}
			return converse.Allow(), nil
		},
	})
	if talk.ID() != "K7" {
		t.Errorf("the conversation is called %s", talk.ID())
	}
	play(t, talk, "go")
	played(t, script)
	audited(t, &s, talk)
	var got []string
	for _, result := range results(talk.History()) {
		r := s.of(t, result.Invocation)
		ran := map[bool]string{true: "ran", false: "-"}[r.Duration > 0]
		got = append(got, fmt.Sprintf("%s %s %s %s%s %s %s %v", r.Ensemble, r.Tool, r.Code, r.Arguments, r.Approved, r.Identity["user_id"], ran, r.Forged))
	}
	want := []string{
		`local echo OK {"a":1} 42 ran []`,
		` local__nobody TOOL_NOT_FOUND {} 42 - []`,
		`local echo INVALID_ARGUMENTS "{\"a\":" 42 - []`,
		`local echo DENIED {"deny":true} 42 - []`,
		`local fails EXECUTION_FAILED  42 ran []`,
		`local panics EXECUTION_FAILED {} 42 ran []`,
		`brief slow TIMEOUT {} 42 ran []`,
		`local tasks INVALID_ARGUMENTS {"User_ID":7} 42 ran [user_id]`,
		`local tasks OK {} 42 ran []`,
		`local echo OK {"change":true}{"changed":1} 42 ran []`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("the records are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	warned := map[string]string{}
	for _, entry := range logs.All() {
		warned[entry.Message] += fmt.Sprint(entry.ContextMap())
	}
	for message, want := range map[string]string{
		"the model tried to set trusted values":             "user_id",
		"a tool failed; the model was not given the reason": "10.0.0.1: refused",
	} {
		if !strings.Contains(warned[message], want) || !strings.Contains(warned[message], "conversation_id:K7") ||
			!strings.Contains(warned[message], "invocation:") || !strings.Contains(warned[message], "tool:local__") {
			t.Errorf("the warning %q says %s", message, warned[message])
		}
	}
	if fails := s.of(t, results(talk.History())[4].Invocation); !strings.Contains(fails.Error, "10.0.0.1") ||
		strings.Contains(canister.TextOf(results(talk.History())[4].Content), "10.0.0.1") {
		t.Errorf("the cause is not where it belongs: %+v", fails)
	}
}

// What an interrupted turn leaves behind has a record too, and each only one.
func TestInterruptedInvocationsAreAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roster, err := ensemble.NewRoster(ensemble.Local("local", waiter("slow"), echo("echo")))
		if err != nil {
			t.Fatal(err)
		}
		var s shelf
		opts := &converse.Options{Audit: audit.New(&s, nil), Limits: converse.Limits{Parallel: 1}, OwnRoster: true}
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("slow", "{}"), call("echo", "{}")}})
		talk := converse.New(script, roster, opts)
		defer talk.Close(context.Background())
		for event, err := range talk.Send(t.Context(), canister.Text("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(converse.InvocationStarted); ok {
				break
			}
		}
		audited(t, &s, talk)
		if len(s.records) != 2 {
			t.Errorf("there are %d records", len(s.records))
		}
	})
}

// Of what a process died over, Send makes records.
func TestLeftoversAreAudited(t *testing.T) {
	history := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u", Time: time.Now()}, Content: canister.Texts("go")},
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "local__echo", Arguments: "{}"},
		canister.Invocation{Head: canister.Head{ID: "j"}, Message: "a", CallID: "d", Name: "local__echo", Arguments: "{}"},
	}
	var s shelf
	script := conversetest.NewScript(conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, echo("echo")), &converse.Options{Audit: audit.New(&s, nil), History: history})
	play(t, talk, "again")
	for _, id := range []string{"i", "j"} {
		if r := s.of(t, id); r.Code != "CANCELED" || r.Duration != 0 || string(r.Arguments) != "{}" {
			t.Errorf("the record is %+v", r)
		}
	}
}

// A result that the log does not accept at first is not recorded twice.
func TestOwedResultsAreAuditedOnce(t *testing.T) {
	var s shelf
	broken := true
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("echo", "{}"), call("echo", "{}")}}, conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, echo("echo")), &converse.Options{
		Audit: audit.New(&s, nil),
		ID:    "talk",
		Log: newWatchedLog(func(_ context.Context, added []canister.Canister) error {
			if _, ok := added[0].(canister.Result); ok && broken {
				return errors.New("the disk is full")
			}
			return nil
		}),
	})
	for _, err := range talk.Send(t.Context(), canister.Text("go")) {
		if err != nil && !strings.Contains(err.Error(), "the disk is full") {
			t.Fatal(err)
		}
	}
	broken = false
	for _, err := range talk.Continue(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	audited(t, &s, talk)
	if len(s.records) != 2 {
		t.Errorf("there are %d records", len(s.records))
	}
}

// Trusted values show nowhere: not in the history, the events, the logs, what
// the model is shown, and the audit unless its policy says so.
func TestTrustedValuesShowNowhere(t *testing.T) {
	const token, key = "tok-hunter2-hunter2", "correct-horse-battery"
	secret := invoker.NewTrusted[string]("token").Secret()
	claims := invoker.TrustedJSON("claims", json.RawMessage(`{"deep":["`+key+`"]}`)).Secret()
	ctx := invoker.WithTrusted(t.Context(), userID.Value(1), claims)
	leak := fn("leak", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		if id, _ := userID.From(ctx); id != 98765432123 {
			t.Errorf("the user is %d: the conversation's own does not win", id)
		}
		said, _ := secret.From(ctx)
		call.Report(invoker.Progress{Message: said, Partial: canister.Texts(said + key)})
		call.Note(invoker.LogEntry{Level: "error", Logger: said, Data: json.RawMessage(`"` + said + key + `"`)})
		return invoker.Output{
			Content:  []canister.Content{canister.Text(said), canister.StructuredContent{JSON: json.RawMessage(`{"` + said + `":"` + key + `"}`)}},
			Metadata: canister.Fields{"m": json.RawMessage(`"` + said + `"`)},
		}, nil
	})
	fails := fn("fails", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, errors.New("the server did not take " + token + key)
	})
	panics, err := invoker.New("panics", "", func(context.Context, struct{}) (string, error) { panic(token) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := fn("missing", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.NotFound, "no %s here", token)
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{
			call("missing", "{}"), call("leak", "{}"), call("fails", "{}"), call("panics", "{}"), call("tasks", "{}"),
		}},
		conversetest.Line{Err: &converse.ModelError{Message: "it said " + token}},
	)
	var out strings.Builder
	var seen sync.Mutex
	model := &watching{Model: script, see: func(r *converse.Request) {
		seen.Lock()
		defer seen.Unlock()
		for _, definition := range r.Tools.Definitions {
			fmt.Fprintf(&out, "%s %s\n", definition.InputSchema, definition.Description)
		}
		for _, c := range r.History {
			line, _ := canister.Marshal(c)
			fmt.Fprintf(&out, "%s\n", line)
		}
	}}
	var s shelf
	core, logs := observer.New(zapcore.DebugLevel)
	talk := converse.New(model, newRoster(t, missing, leak, fails, panics, tasks(t)), &converse.Options{
		Trusted: []invoker.Value{userID.Value(98765432123), secret.Value(token)},
		Audit:   audit.New(&s, &audit.Options{Logger: zap.New(core)}),
		Logger:  zap.New(core),
	})
	for event, err := range talk.Send(ctx, canister.Text("go")) {
		if err != nil {
			fmt.Fprintf(&out, "error: %v %+v %#v\n", err, err, err)
			continue
		}
		line, err := eventjson.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n%+v\n", line, event)
	}
	for _, c := range talk.History() {
		line, err := canister.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", line)
	}
	encoder := zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig())
	for _, entry := range logs.All() {
		line, err := encoder.EncodeEntry(entry.Entry, entry.Context)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "log: %s\n", line)
	}
	for _, record := range s.records {
		line, err := record.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "audit: %s\n", line)
	}
	for line := range strings.Lines(out.String()) {
		for _, form := range []string{"hunter2", key, "98765432123", "9.87654", "user_id"} {
			if strings.Contains(line, form) {
				t.Errorf("%s is in %s", form, line)
			}
		}
	}
	for _, want := range []string{
		"a tool says", "error: ", `"code":"OK"`, "[secret]", "did not take [secret][secret]", "a tool panicked",
		"NOT_FOUND: no [secret] here", `"partial":[{"type":"text","text":"[secret][secret]"}]`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is nowhere in\n%s", want, out.String())
		}
	}
}

// watching sees the requests that a model gets.
type watching struct {
	converse.Model
	see func(*converse.Request)
}

func (w *watching) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	w.see(request)
	return w.Model.Exchange(ctx, request)
}
