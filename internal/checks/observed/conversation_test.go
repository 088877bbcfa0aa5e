// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker/telemetry"
)

const farmQuestion = "Who is WM-4521?"

// The same conversation with the server in Python that implements only the original
// contract, with our own server, and with our own server behind a sidecar: it takes the
// same course, and its trace is the one in docs/observability/trace.md.
func TestOneConversation(t *testing.T) {
	model := "MODEL_URL=" + launchModel(t)
	own := mustRecord(t, "server", telemetry.Options{})
	address := farmServer(t, own.Telemetry)
	want := farmCourse{
		Answers: []string{"I look it up.", "WM-4521 is Wanjikũ; there are no notes."},
		Results: []string{`INVALID_ARGUMENTS: farmer_id must begin with WM-`, ``, `{"asked_by":"","farmer_id":"WM-4521","name":"Wanjikũ"}`},
		Reason:  "answered",
	}
	for _, tt := range []struct {
		name, config string
		environment  func(t *testing.T) string
		ours         bool
	}{
		{"A server in Python", "farm", func(t *testing.T) string { return "FARM_ADDRESS=" + farmInPython(t) }, false},
		{"A server of this project", "farm", func(*testing.T) string { return "FARM_ADDRESS=" + address }, true},
		{"Behind a Dapr sidecar", "dapr", func(t *testing.T) string { return "DAPR_GRPC_PORT=" + farmSidecar(t, address) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			environment := []string{model, tt.environment(t)}
			args := []string{"run", "--trace", "--config", "testdata/" + tt.config + ".toml", farmQuestion}
			events, _ := consort(t, environment, slices.Insert(slices.Clone(args), 1, "--json")...)
			if got := courseOf(t, events); !reflect.DeepEqual(got, want) {
				t.Errorf("the conversation went\n%+v, want\n%+v", got, want)
			}
			own.exporter.Reset()
			answer, notes := consort(t, environment, args...)
			if answer != strings.Join(want.Answers, "\n\n")+"\n" {
				t.Errorf("the answer is %q", answer)
			}
			_, trace, _ := strings.Cut(notes, "\n\n")
			documented(t, tt.name, trace)
			if tt.ours {
				reaches(t, own.spans(), trace)
			}
		})
	}
}

// reaches fails unless the calls are in the trace that was printed, on the
// server's side too.
func reaches(t *testing.T, served []span, printed string) {
	t.Helper()
	calls := 0
	for _, s := range served {
		if s.Attributes["mcp.method.name"] != "tools/call" {
			continue
		}
		calls++
		if !strings.HasPrefix(printed, "trace "+s.Trace+"\n") || s.Parent == "" {
			t.Errorf("%s of the server is in the trace %s, below %q; the command printed\n%s", s.Name, s.Trace, s.Parent, printed)
		}
	}
	if calls != 3 {
		t.Errorf("the server has seen %d calls", calls)
	}
}

// farmCourse is how a conversation went, as far as it is the same each time.
type farmCourse struct {
	Answers []string // texts of the model
	Results []string // in the order of the invocations
	Reason  string
}

func courseOf(t *testing.T, events string) (course farmCourse) {
	t.Helper()
	results, asked := make(map[string]string), []string(nil)
	for line := range strings.Lines(events) {
		var event struct {
			Event, Reason string
			Canister      json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		course.Reason = event.Reason
		if event.Canister == nil {
			continue
		}
		read, err := canister.Unmarshal(event.Canister)
		if err != nil {
			t.Fatal(err)
		}
		switch c := read.(type) {
		case canister.Assistant:
			if text := canister.TextOf(c.Content); text != "" {
				course.Answers = append(course.Answers, text)
			}
		case canister.Invocation:
			asked = append(asked, c.ID)
		case canister.Result:
			results[c.Invocation] = resultText(t, c)
		}
	}
	for _, id := range asked {
		course.Results = append(course.Results, results[id])
	}
	return course
}

// resultText is a result as one line, which must be the same for all servers regardless
// of how they write JSON.
func resultText(t *testing.T, r canister.Result) string {
	t.Helper()
	var words []string
	if r.Code != "" {
		words = append(words, r.Code)
	}
	for _, content := range r.Content {
		structured, ok := content.(canister.StructuredContent)
		if !ok {
			words = append(words, canister.TextOf([]canister.Content{content}))
			continue
		}
		var value any
		if err := json.Unmarshal(structured.JSON, &value); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, string(plain))
	}
	return strings.Join(words, ": ")
}
