// SPDX-License-Identifier: Apache-2.0

package eventjson_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

func ExampleMarshal() {
	n := 0
	newID := func() string { n++; return fmt.Sprintf("id-%d", n) }
	for event, err := range converse.New(conversetest.NewScript(conversetest.Line{Text: "No."}), nil, &converse.Options{
		NewID: newID,
		Now:   func() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC) },
	}).Send(context.Background(), canister.Text("Is it cold?")) {
		if err != nil {
			log.Fatal(err)
		}
		line, err := eventjson.Marshal(event)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
	// Output:
	// {"event":"turn_started"}
	// {"event":"message_started"}
	// {"event":"text_delta","text":"No."}
	// {"event":"message_completed","canister":{"kind":"assistant","id":"id-2","time":"2026-03-01T09:30:00Z","content":[{"type":"text","text":"No."}],"model":"script","finish":"stop"}}
	// {"event":"exchange_completed","finish":"stop"}
	// {"event":"turn_completed","reason":"answered","answer":"id-2","exchanges":1}
}

// The events of the examples in docs/events.md, in the order of the page.
func documentedEvents() []converse.Event {
	at := func(milliseconds int) time.Time {
		return time.Date(2026, 3, 1, 9, 30, 0, milliseconds*1e6, time.UTC)
	}
	invocation := canister.Invocation{
		Head:    canister.Head{ID: "c3", Time: at(2250)},
		Message: "c2", CallID: "call_1", Name: "local__weather", Arguments: `{"place":"Oslo"}`,
	}
	asks := canister.Assistant{Head: canister.Head{ID: "c2", Time: at(2250)}, Finish: canister.FinishInvocations}
	answers := canister.Assistant{
		Head:    canister.Head{ID: "c5", Time: at(4000)},
		Content: canister.Texts("A raincoat over a warm jumper."),
		Finish:  canister.FinishStop,
	}
	result := canister.Result{
		Head:       canister.Head{ID: "c4", Time: at(2750)},
		Invocation: "c3",
		Content:    canister.Texts("4 degrees, rain"),
	}
	wait := canister.Wait{
		Head: canister.Head{ID: "c9", Time: at(2250)}, For: canister.WaitApproval,
		Invocation: "c3", Deadline: at(2250).Add(24 * time.Hour), Who: "dana",
	}
	first := canister.Usage{Input: 212, Output: 31}
	second := canister.Usage{Input: 260, Cached: 192, Output: 12}
	return []converse.Event{
		converse.TurnStarted{Tools: 2},
		converse.MessageStarted{},
		converse.MessageCompleted{Message: asks},
		converse.InvocationRequested{Invocation: invocation},
		converse.ExchangeCompleted{Finish: canister.FinishInvocations, Usage: &first, Duration: 1250 * time.Millisecond},
		converse.InvocationStarted{Invocation: invocation},
		converse.InvocationProgressed{
			Invocation: invocation,
			Progress:   invoker.Progress{Done: 1, Total: 2, Message: "asking the station"},
		},
		converse.InvocationCompleted{Invocation: invocation, Result: result, Duration: 480_125_400 * time.Nanosecond},
		converse.MessageStarted{},
		converse.TextDelta{Text: "A raincoat over "},
		converse.TextDelta{Text: "a warm jumper."},
		converse.MessageCompleted{Message: answers},
		converse.ExchangeCompleted{Finish: canister.FinishStop, Usage: &second, Duration: 1250 * time.Millisecond},
		converse.TurnCompleted{Turn: converse.Turn{
			Reason: converse.ReasonAnswered, Answer: answers, Exchanges: 2, Invocations: 1, Usage: first.Add(second),
		}},
		converse.TurnStarted{
			Tools: 7, Added: []string{"files__move"}, Removed: []string{"files__delete"},
			Aside: []ensemble.Aside{{Ensemble: "files", Tool: "watch", Reason: "its schema is no object"}},
			Away:  []ensemble.Away{{Ensemble: "database", Err: errors.New("connection refused")}},
		},
		converse.ToolsAdded{Tools: 8, Added: []string{"files__search"}},
		converse.ExchangeRetried{Retry: converse.Retry{
			Attempt: 1, Wait: 500 * time.Millisecond, Err: &converse.ModelError{Message: "overloaded", Status: 503},
		}},
		converse.ExchangeMoved{Fallback: converse.Fallback{
			From: "gpt-5.6", To: "claude-opus-5", Err: &converse.ModelError{Message: "overloaded", Status: 503},
		}},
		converse.CompactionCompleted{
			Document: canister.Document{Head: canister.Head{ID: "c99"}, Title: "Summary", Content: canister.Texts("The user travels to Oslo.")},
			From:     "c1", To: "c90", Before: 6600, After: 1310,
			Usage: &canister.Usage{Input: 6120, Output: 75}, Duration: 2250 * time.Millisecond,
		},
		converse.CompactionCompleted{
			Document: canister.Document{Head: canister.Head{ID: "c98"}}, From: "c1", To: "c90", Trimmed: 2048, Before: 6600, After: 4100,
		},
		converse.ReasoningDelta{Text: "Rain, so a coat."},
		converse.InvocationAnnounced{Name: "local__weather"},
		converse.InvocationProgressed{Invocation: invocation, Progress: invoker.Progress{Partial: canister.Texts("4 degrees")}},
		converse.InvocationCompleted{
			Invocation: invocation, Duration: 12 * time.Millisecond, Cause: `server "weather" exited: exit status 1; stderr: KeyError: 'STATION'`,
			Result: canister.Result{Head: canister.Head{ID: "c4"}, Invocation: "c3", Code: "OUTCOME_UNKNOWN"},
		},
		converse.WaitStarted{Wait: wait},
		converse.TurnCompleted{Turn: converse.Turn{
			Reason: converse.ReasonWaiting, Answer: asks, Exchanges: 1, Invocations: 1, Usage: first, Waits: []canister.Wait{wait},
		}},
		converse.WaitEnded{Wait: wait, Answer: canister.Answer{
			Head: canister.Head{ID: "c10", Time: at(2250).Add(6 * time.Hour)}, Wait: "c9", Verdict: canister.VerdictAllow, By: "dana",
		}},
	}
}

// Every line of JSON in docs/events.md is what Marshal writes, each event
// is among them and in the table with all of its members, and so is each
// reason.
func TestEventsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "{") {
			documented = append(documented, line)
		}
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, row, _ := strings.Cut(name, "`")
			rows[name] = row
		}
	}
	events := documentedEvents()
	if len(documented) != len(events) {
		t.Fatalf("%d lines of JSON on the page, %d events in the test", len(documented), len(events))
	}
	seen := map[string]bool{}
	for i, event := range events {
		line, err := eventjson.Marshal(event)
		if err != nil || string(line) != documented[i] {
			t.Errorf("%v\n got %s\nwant %s", err, line, documented[i])
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatal(err)
		}
		name := strings.Trim(string(members["event"]), `"`)
		seen[name] = true
		delete(members, "event")
		for member := range members {
			if !strings.Contains(rows[name], "`"+member+"`") {
				t.Errorf("the member %s of %s is not in the table", member, name)
			}
		}
	}
	for _, name := range declaredEvents(t) {
		if !seen[name] {
			t.Errorf("the page has no example of %s", name)
		}
	}
	for _, reason := range []converse.Reason{
		converse.ReasonAnswered, converse.ReasonLength, converse.ReasonContentFilter, converse.ReasonRefusal,
		converse.ReasonNothing, converse.ReasonExchanges, converse.ReasonTime, converse.ReasonTokens, converse.ReasonWaiting,
	} {
		if !strings.Contains(string(page), "`"+string(reason)+"`") {
			t.Errorf("the reason %s is not documented", reason)
		}
	}
}

// declaredEvents returns the names of all events in converse/event.go, in their JSON
// form, so that a new one cannot be forgotten.
func declaredEvents(t *testing.T) []string {
	source, err := os.ReadFile("../event.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	capital := regexp.MustCompile(`(.)([A-Z])`)
	for _, match := range regexp.MustCompile(`(?m)^func \((\w+)\) event\(\)`).FindAllSubmatch(source, -1) {
		names = append(names, strings.ToLower(capital.ReplaceAllString(string(match[1]), "${1}_$2")))
	}
	if len(names) < 12 {
		t.Fatalf("only %q found", names)
	}
	return names
}

func TestMarshalOddities(t *testing.T) {
	for _, test := range []struct {
		name  string
		event converse.Event
		want  string
	}{
		{"no escapes", converse.TextDelta{Text: "<a> & \u2028"}, `{"event":"text_delta","text":"<a> & \u2028"}`},
		{"bytes", converse.TextDelta{Text: "a\xe9"}, `{"event":"text_delta","text":"a\ufffd"}`},
		{"no number", converse.InvocationProgressed{Progress: invoker.Progress{Done: math.NaN(), Total: math.Inf(1)}},
			`{"event":"invocation_progressed"}`},
		{"usage not known", converse.ExchangeCompleted{}, `{"event":"exchange_completed"}`},
		{"usage nothing", converse.ExchangeCompleted{Usage: &canister.Usage{}}, `{"event":"exchange_completed"}`},
		{"no error", converse.ExchangeRetried{}, `{"event":"exchange_retried"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			line, err := eventjson.Marshal(test.event)
			if err != nil || string(line) != test.want {
				t.Errorf("%v\n got %s\nwant %s", err, line, test.want)
			}
		})
	}
}

// A canister stands in an event byte for byte as it stands in a history.
func TestMarshalKeepsCanisters(t *testing.T) {
	result := canister.Result{
		Head:    canister.Head{ID: "r", Extra: canister.Extra{Metadata: canister.Fields{"n": json.RawMessage(`1e400`)}}},
		Content: []canister.Content{canister.Text("<\u2028\xff>"), canister.StructuredContent{JSON: json.RawMessage(`{"b":1.50,"a":"&"}`)}},
	}
	want, err := canister.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	line, err := eventjson.Marshal(converse.InvocationCompleted{Result: result})
	if err != nil || !bytes.HasSuffix(line, append([]byte(`"canister":`), append(want, '}')...)) {
		t.Errorf("%v\n got %s\nwant %s", err, line, want)
	}
}

func TestMarshalErrors(t *testing.T) {
	broken := canister.Result{Content: []canister.Content{nil}}
	for _, event := range []converse.Event{nil, converse.InvocationCompleted{Result: broken}} {
		if line, err := eventjson.Marshal(event); err == nil {
			t.Errorf("%T gives %s", event, line)
		}
	}
}
