// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/tokenestimate"
	"github.com/consort-go/consort/invoker"
)

// The speeds of the example: of a model, and of a tool.
const (
	thinking  = 2 * time.Second       // before the first token of an answer
	perToken  = 20 * time.Millisecond // of an answer
	perCall   = 300 * time.Millisecond
	theAnswer = "The most wanted issue that somebody can begin with this week is number 7: Ada, on Tuesday."
)

// workedProgram does what the 30 calls do.
const workedProgram = `issues = gather(lambda n: tracker__get_issue(number=n), tracker__list_issues(state="open"))
people = gather(lambda i: people__get_person(name=i["author"]), issues)
wanted = sorted([(i["votes"], i["number"], p["mail"]) for i, p in zip(issues, people)], reverse=True)[:9]
days = gather(lambda w: calendar__first_free_day(mail=w[2]), wanted)
return [(number, mail, day) for (votes, number, mail), day in zip(wanted, days) if day != "none"][0]`

// TestWorkedExample does the same work in 30 calls over three servers, one after the other,
// as many as possible together, and as one program. The guide has the table.
func TestWorkedExample(t *testing.T) {
	if testing.Short() {
		t.Skip("the guide has the table")
	}
	table := "| | exchanges | tokens sent | tokens written | time |\n|---|---:|---:|---:|---:|\n"
	for _, way := range []struct {
		name  string
		calls [][]conversetest.Call
	}{
		{"30 calls, one after the other", oneByOne()},
		{"30 calls, together where possible", together()},
		{"one program", [][]conversetest.Call{{{Name: "code__run_code", Arguments: programText(workedProgram)}}}},
	} {
		synctest.Test(t, func(t *testing.T) { table += "| " + way.name + " | " + work(t, way.calls) + " |\n" })
	}
	t.Log("\n" + table)
	guide, err := os.ReadFile("../../docs/guides/code.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), table) || !strings.Contains(string(guide), workedProgram) {
		t.Errorf("docs/guides/code.md does not have this table and this program:\n%s\n%s", table, workedProgram)
	}
}

func programText(program string) string {
	text, _ := json.Marshal(map[string]string{"program": program})
	return string(text)
}

// together are the calls of four exchanges.
func together() [][]conversetest.Call {
	exchanges := [][]conversetest.Call{{{Name: "tracker__list_issues", Arguments: `{"state":"open"}`}}, nil, nil, nil}
	for n := range 10 {
		exchanges[1] = append(exchanges[1], conversetest.Call{Name: "tracker__get_issue", Arguments: fmt.Sprintf(`{"number":%d}`, n+1)})
		exchanges[2] = append(exchanges[2], conversetest.Call{Name: "people__get_person", Arguments: fmt.Sprintf(`{"name":"person %d"}`, n+1)})
	}
	for n := range 9 {
		exchanges[3] = append(exchanges[3], conversetest.Call{Name: "calendar__first_free_day", Arguments: fmt.Sprintf(`{"mail":"person%d@example.com"}`, n+1)})
	}
	return exchanges
}

func oneByOne() (exchanges [][]conversetest.Call) {
	for _, calls := range together() {
		for _, call := range calls {
			exchanges = append(exchanges, []conversetest.Call{call})
		}
	}
	return exchanges
}

// work holds a conversation and returns a row of the table.
func work(t *testing.T, exchanges [][]conversetest.Call) string {
	var sent, written int64
	var script []conversetest.Line
	for n := range len(exchanges) + 1 {
		line := conversetest.Line{Text: theAnswer}
		said := tokenestimate.InText(len(theAnswer))
		if n < len(exchanges) {
			line, said = conversetest.Line{Calls: exchanges[n]}, 0
			for _, call := range exchanges[n] {
				said += tokenestimate.InText(len(call.Name) + len(call.Arguments))
			}
		}
		line.Expect = func(request *converse.Request) error {
			sent += tokensOf(t, request)
			written += said
			time.Sleep(thinking + time.Duration(said)*perToken)
			return nil
		}
		script = append(script, line)
	}
	calls := 0
	roster := servers(t, &calls)
	defer func() {
		if err := roster.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	model := conversetest.NewScript(script...)
	began := time.Now()
	turn, err := converse.New(model, roster, &converse.Options{Limits: converse.Limits{Exchanges: 50, Parallel: 16}}).Ask(
		t.Context(), canister.Text("Which open issue with many votes can be begun first, and by whom?"),
	)
	took := time.Since(began)
	if err != nil || turn.Text() != theAnswer || model.Err() != nil || calls != 30 {
		t.Fatalf("%v, %v, %q after %d calls", err, model.Err(), turn.Text(), calls)
	}
	return fmt.Sprintf("%d | %d | %d | %.1f s", turn.Exchanges, sent, written, took.Seconds())
}

// tokensOf estimates the tokens of a request, of which the definitions of tools are a part.
func tokensOf(t *testing.T, request *converse.Request) (tokens int64) {
	for _, d := range request.Tools.Definitions {
		tokens += tokenestimate.InText(len(d.Name) + len(d.Description) + len(d.InputSchema))
	}
	for _, c := range request.History {
		line, err := canister.Marshal(canister.WithHead(c, canister.Head{}))
		if err != nil {
			t.Error(err)
		}
		tokens += tokenestimate.InText(len(line))
	}
	return tokens
}

// servers are three servers with the data of the example, and run_code.
func servers(t *testing.T, calls *int) *ensemble.Roster {
	var mu = make(chan struct{}, 1)
	define := func(name, description string, do func(n int, text string) any) invoker.Invoker {
		type arguments struct {
			State  string `json:"state,omitempty"`
			Name   string `json:"name,omitempty"`
			Mail   string `json:"mail,omitempty"`
			Number int    `json:"number,omitempty"`
		}
		tool, err := invoker.New(name, description, func(_ context.Context, a arguments) (any, error) {
			time.Sleep(perCall)
			mu <- struct{}{}
			*calls++
			<-mu
			return do(a.Number, a.State+a.Name+a.Mail), nil
		}, &invoker.Options{Hints: invoker.Hints{ReadOnly: true}})
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}
	long := strings.Repeat("It happens when the window is small and the list is long. ", 12)
	roster, err := ensemble.NewRoster(
		ensemble.Local("tracker",
			define("list_issues", "List the numbers of issues.", func(int, string) any { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10} }),
			define("get_issue", "Get an issue.", func(n int, _ string) any {
				return map[string]any{"number": n, "votes": (n * 7) % 11, "author": fmt.Sprintf("person %d", n), "text": long}
			})),
		ensemble.Local("people", define("get_person", "Get a person.", func(_ int, name string) any {
			return map[string]any{"name": name, "mail": strings.ReplaceAll(name, " ", "") + "@example.com", "about": long[:300]}
		})),
		ensemble.Local("calendar", define("first_free_day", "Get the first free day of this week.", func(int, string) any { return "Tuesday" })),
		runcode.Ensemble("code", nil))
	if err != nil {
		t.Fatal(err)
	}
	return roster
}
