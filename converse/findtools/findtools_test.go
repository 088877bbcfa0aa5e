// SPDX-License-Identifier: Apache-2.0

package findtools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/ensemble/resourcetools"
	"github.com/consort-go/consort/invoker"
)

const (
	find = "tools__find_tools"
	call = "tools__call_tool"
)

// servers returns a roster of a hundred tools, and of the two that find them.
func servers(t *testing.T) *ensemble.Roster {
	t.Helper()
	echo := ensembletest.NewTool("echo", func(_ context.Context, c *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts("echo of " + string(c.Arguments))}, nil
	})
	var many []invoker.Invoker
	for i := range 98 {
		many = append(many, ensembletest.Returns(fmt.Sprintf("number_%d", i), ""))
	}
	others := []*ensemble.Ensemble{ensemble.Local("files", echo, ensembletest.Returns("delete", "")), ensemble.Local("many", many...)}
	tools, err := findtools.Ensemble("tools", others...)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(append(others, tools)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roster.Close(context.Background()) })
	return roster
}

// shows checks the tools and the calls that a request shows, each of them by its name.
func shows(names ...string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		var got []string
		for _, d := range request.Tools.Definitions {
			got = append(got, d.Name)
		}
		for _, c := range request.History {
			if invocation, ok := c.(canister.Invocation); ok {
				got = append(got, invocation.Name+" "+invocation.Arguments)
			}
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("the request shows %q, not %q", got, names)
		}
		return nil
	}
}

func says(name, arguments string) conversetest.Line {
	return conversetest.Line{Calls: []conversetest.Call{{Name: name, Arguments: arguments}}}
}

// A model finds a tool and calls it. In the history the call is one of the tool itself, and
// the model is shown what it wrote.
func TestFindAndCall(t *testing.T) {
	roster := servers(t)
	first := says(find, `{"query":"echo"}`)
	first.Expect = shows(call, find)
	second := says(call, `{"name":"files__echo","arguments":{"a": 1}}`)
	second.Expect = shows(call, find, find+` {"query":"echo"}`)
	last := conversetest.Line{Text: "Done.", Expect: shows(call, find, find+` {"query":"echo"}`, call+` {"name":"files__echo","arguments":{"a":1}}`)}
	script := conversetest.NewScript(first, second, last)
	talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), roster, nil)
	turn, err := talk.Ask(t.Context(), canister.Text("Go."))
	if err := errors.Join(err, script.Err()); err != nil {
		t.Fatal(err)
	}
	if turn.Text() != "Done." {
		t.Errorf("it says %q", turn.Text())
	}
	var calls, results []string
	for _, c := range talk.History() {
		switch c := c.(type) {
		case canister.Invocation:
			calls = append(calls, c.Name+" "+c.Arguments)
		case canister.Result:
			results = append(results, canister.TextOf(c.Content))
		}
	}
	if want := []string{find + ` {"query":"echo"}`, `files__echo {"a": 1}`}; !slices.Equal(calls, want) {
		t.Errorf("the history has the calls %q", calls)
	}
	if !strings.HasPrefix(results[0], `{"name":"files__echo",`) || !strings.Contains(results[0], `"input_schema":{`) || results[1] != `echo of {"a": 1}` {
		t.Errorf("the results are %q", results)
	}
}

func TestPinned(t *testing.T) {
	only := conversetest.Line{Text: "Done.", Expect: shows("files__delete", "files__echo", "many__number_7", call, find)}
	script := conversetest.NewScript(only)
	model := findtools.New(script, &findtools.Options{Tools: "tools", Pinned: []string{"files__*", "many__number_7", "absent"}})
	if _, err := converse.New(model, servers(t), nil).Ask(t.Context(), canister.Text("Go.")); err != nil {
		t.Fatal(err)
	}
}

// count checks how many tools a request shows.
func count(n int) func(*converse.Request) error {
	return func(request *converse.Request) error {
		if got := len(request.Tools.Definitions); got != n {
			return fmt.Errorf("the request shows %d tools, not %d", got, n)
		}
		return nil
	}
}

// limited is a model that takes a number of tools.
type limited struct {
	*conversetest.Script
	most int
}

func (l limited) MaxTools() int                        { return l.most }
func (l limited) Shortened(*invoker.Definition) string { return "" }

// All tools are shown as long as they are few, by their tokens and for the model's API.
func TestAbove(t *testing.T) {
	for name, test := range map[string]struct {
		above       int64
		most, shown int
	}{
		"few tokens":             {1 << 20, 0, 100},
		"many tokens":            {100, 0, 2},
		"as many as it takes":    {1 << 20, 100, 100},
		"more than it takes":     {1 << 20, 99, 2},
		"it always has to":       {0, 0, 2},
		"many, and few it takes": {100, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			script := conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: count(test.shown)})
			model := findtools.New(limited{script, test.most}, &findtools.Options{Tools: "tools", Above: test.above})
			if _, err := converse.New(model, servers(t), nil).Ask(t.Context(), canister.Text("Go.")); err != nil {
				t.Error(err)
			}
		})
	}
}

// bring is a message with a tool of the client.
func bring(name string) canister.User {
	user := canister.User{Content: canister.Texts("Go.")}
	user.Metadata = clienttools.With(nil, []clienttools.Tool{{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}})
	return user
}

// The tools of the client cannot be found, so they are shown. A call of one stays as it is in
// later turns, which do not offer it.
func TestToolsOfTheClientAreShown(t *testing.T) {
	first := says("get_location", `{}`)
	first.Expect = shows("files__delete", call, find, "get_location")
	last := conversetest.Line{Text: "Done.", Expect: shows("files__delete", "many__number_0", call, find, "get_location {}")}
	script := conversetest.NewScript(first, last)
	model := findtools.New(limited{script, 4}, &findtools.Options{Tools: "tools", Pinned: []string{"files__delete", "many__*"}})
	talk := converse.New(model, servers(t), &converse.Options{Log: history.NewMemory(), ID: "talk"})
	if err := talk.Add(t.Context(), bring("get_location")); err != nil {
		t.Fatal(err)
	}
	turn, err := talk.Run(t.Context())
	if err != nil || turn.Reason != converse.ReasonWaiting {
		t.Fatalf("%v, %v", turn, err)
	}
	if _, err := talk.Ask(t.Context(), canister.Text("Go on.")); err != nil {
		t.Fatal(err)
	}
}

// No more tools are pinned than the model takes besides the two.
func TestPinnedAreBounded(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: shows("many__number_0", call, find)})
	model := findtools.New(limited{script, 3}, &findtools.Options{Tools: "tools", Pinned: []string{"many__*"}})
	if _, err := converse.New(model, servers(t), nil).Ask(t.Context(), canister.Text("Go.")); err != nil {
		t.Fatal(err)
	}
}

// A conversation that has begun to search goes on with it, in another process too.
func TestGoesOnSearching(t *testing.T) {
	roster := servers(t)
	script := conversetest.NewScript(says(find, `{"query":"echo"}`), conversetest.Line{Text: "Done."})
	talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), roster, nil)
	if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil {
		t.Fatal(err)
	}
	script = conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: count(2)})
	talk = converse.New(findtools.New(script, &findtools.Options{Tools: "tools", Above: 1 << 20}), roster, &converse.Options{History: talk.History()})
	if _, err := talk.Ask(t.Context(), canister.Text("Go on.")); err != nil {
		t.Fatal(err)
	}
}

// What a model writes into call_tool by mistake gets a result that leads on.
func TestMistakes(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"name":"files__echo","arguments":"{\"a\":1}"}`: `echo of {"a":1}`, // as a string
		`{"name":"files__echo","arguments":null}`:        `echo of {}`,
		`{"name":"files__echo"}`:                         `echo of {}`,
		`{"name":"files__ecko","arguments":{}}`:          "files__echo",
		`{"name":"","arguments":{}}`:                     `{"name": NAME, "arguments": {…}}`,
		`{"arguments":{}}`:                               "name",
		`{`:                                              "JSON",
		`[]`:                                             `{"name": NAME`,
		``:                                               "name",
		`{"name":"tools__call_tool","arguments":{"name":"files__echo","arguments":{}}}`:              `{"name": NAME, "arguments": {…}}`,
		`{"name":"tools__find_tools","arguments":{"query":"echo"}}`:                                  `{"name":"files__echo"`,
		`{"name":"tools__find_tools","arguments":{"query":"xyzzy"}}`:                                 "There are tools of files (2), many (98).",
		`{"name":"tools__find_tools","arguments":{"query":"number 1 2 3 4 5 6 7 8 9","limit":9999}}`: "/limit",
	} {
		script := conversetest.NewScript(says(call, arguments), conversetest.Line{Text: "Done."})
		talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), servers(t), nil)
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		for _, c := range talk.History() {
			if result, ok := c.(canister.Result); ok && !strings.Contains(canister.TextOf(result.Content), want) {
				t.Errorf("%s: %q", arguments, canister.TextOf(result.Content))
			}
		}
	}
}

// The requests of a conversation begin with those before, in the same form, and show the
// same tools.
func TestRequestsGrow(t *testing.T) {
	var script []conversetest.Line
	var before *converse.Request
	grows := func(request *converse.Request) error {
		defer func() { before = request }()
		switch {
		case before == nil:
		case before.Tools != request.Tools:
			return errors.New("the tools are another list")
		case !reflect.DeepEqual(before.History, request.History[:len(before.History)]):
			return errors.New("what was sent before has changed")
		}
		return nil
	}
	for range 20 {
		script = append(
			script, says(find, `{"query":"number"}`), says(call, `{"name":"files__echo","arguments":{"z":1,"a":[ ]}}`),
			says(call, "{"), says("many__number_3", "{}"),
		)
	}
	script = append(script, conversetest.Line{Text: "Done."})
	for i := range script {
		script[i].Expect = grows
	}
	talk := converse.New(
		findtools.New(conversetest.NewScript(script...), &findtools.Options{Tools: "tools"}), servers(t),
		&converse.Options{Limits: converse.Limits{Exchanges: 200}},
	)
	if turn, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil || turn.Exchanges != len(script) {
		t.Errorf("%d exchanges: %v", turn.Exchanges, err)
	}
}

// A budget counts the definitions that are sent, not those that are found.
func TestBudget(t *testing.T) {
	policy := &budget.Policy{Ledger: budget.NewMemory(), Caps: []budget.Cap{{Scope: budget.Conversation, Tokens: 9_000}}, Answer: 1000}
	for above, wants := range map[int64]bool{0: true, 1 << 40: false} {
		script := conversetest.NewScript(says(find, `{"query":"echo"}`), conversetest.Line{Text: "Done."})
		model := findtools.New(script, &findtools.Options{Tools: "tools", Above: above})
		turn, err := converse.New(model, servers(t), &converse.Options{Budget: policy, ID: fmt.Sprint(above)}).Ask(t.Context(), canister.Text("Go."))
		if answered := err == nil && turn.Text() == "Done."; answered != wants {
			t.Errorf("with all tools up to %d tokens: %q, %s, %v", above, turn.Text(), turn.Reason, err)
		}
	}
}

// Whatever a model writes into call_tool, its calls keep their IDs, and a history
// with them can be sent.
func FuzzCallTool(f *testing.F) {
	f.Add(`{"name":"files__echo","arguments":{"a":1}}`)
	f.Add(`{"name":"files__echo","arguments":"{\"a\":1}"}`)
	f.Add(`{"name":"x","arguments":"<&>\u2028"}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		var shown canister.Invocation
		script := conversetest.NewScript(says(call, arguments), conversetest.Line{Text: "Done.", Expect: func(request *converse.Request) error {
			for _, c := range request.History {
				if invocation, ok := c.(canister.Invocation); ok {
					shown = invocation
				}
			}
			return nil
		}})
		talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), servers(t), nil)
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil {
			t.Fatal(err)
		}
		if json.Valid([]byte(arguments)) && !json.Valid([]byte(shown.Arguments)) {
			t.Errorf("%q is shown as %q", arguments, shown.Arguments)
		}
	})
}

// announcing is a model that announces a call through call_tool, and makes it.
type announcing struct{ converse.Model }

func (announcing) Exchange(_ context.Context, r *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		message := canister.Assistant{Head: canister.Head{ID: r.NewID()}}
		calls := []canister.Invocation{
			{Head: canister.Head{ID: r.NewID()}, Message: message.ID, CallID: "1", Name: find, Arguments: `{"query":"echo"}`},
			{Head: canister.Head{ID: r.NewID()}, Message: message.ID, CallID: "2", Name: call, Arguments: `{"name":"files__echo","arguments":{}}`},
			{Head: canister.Head{ID: r.NewID()}, Message: message.ID, CallID: "3", Name: call, Arguments: `{}`},
		}
		for _, c := range calls {
			if !yield(converse.Delta{Invocation: c.Name}, nil) {
				return
			}
		}
		yield(converse.Reply{Message: message, Invocations: calls}, nil)
	}
}

// A call through call_tool is announced under the name of its tool.
func TestAnnouncement(t *testing.T) {
	talk := converse.New(findtools.New(announcing{}, &findtools.Options{Tools: "tools"}), servers(t), nil)
	var names []string
	for event := range talk.Send(t.Context(), canister.Text("Go.")) {
		switch e := event.(type) {
		case converse.InvocationAnnounced:
			names = append(names, e.Name)
		case converse.InvocationRequested:
			names = append(names, "requested")
		}
		if len(names) == 4 {
			break
		}
	}
	if got := strings.Join(names, " "); got != find+" files__echo "+call+" requested" {
		t.Errorf("announced: %s", got)
	}
}

// seeing is a model that notes where the histories are that it is asked with.
type seeing struct {
	converse.Model
	arrays  map[*canister.Canister]bool
	problem error
}

func (s *seeing) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	s.arrays[&request.History[0]] = true
	calls := 0
	for _, c := range request.History {
		if invocation, ok := c.(canister.Invocation); ok {
			calls++
			if invocation.Name != call || !strings.HasPrefix(invocation.Arguments, `{"name":"files__echo"`) {
				s.problem = fmt.Errorf("the request shows %s %s", invocation.Name, invocation.Arguments)
			}
		}
	}
	_ = append(request.History, canister.User{}) // must not reach the next request
	return s.Model.Exchange(ctx, request)
}

// A long history is not copied for each exchange.
func TestHistoriesAreNotCopied(t *testing.T) {
	const exchanges = 300
	var lines []conversetest.Line
	for range exchanges {
		lines = append(lines, says(call, `{"name":"files__echo","arguments":{}}`))
	}
	script := conversetest.NewScript(append(lines, conversetest.Line{Text: "Done."})...)
	inner := &seeing{Model: script, arrays: map[*canister.Canister]bool{}}
	talk := converse.New(findtools.New(inner, &findtools.Options{Tools: "tools"}), servers(t), &converse.Options{
		Limits: converse.Limits{Exchanges: exchanges + 1},
	})
	turn, err := talk.Ask(t.Context(), canister.Text("Go."))
	if err := errors.Join(err, script.Err(), inner.problem); err != nil || turn.Text() != "Done." {
		t.Fatalf("%v, %v", turn, err)
	}
	if n := len(inner.arrays); n > 20 {
		t.Errorf("the history was copied %d times in %d exchanges", n, exchanges)
	}
}

// A person who is asked about a call through call_tool is asked about the tool itself, with its
// own arguments, and decides about that call.
func TestApprovalOfFoundTools(t *testing.T) {
	for name, test := range map[string]struct {
		decision converse.Decision
		result   string
	}{
		"allow":  {converse.Allow(), `echo of {"a": 1}`},
		"deny":   {converse.Deny("not now"), "not now"},
		"change": {converse.Change(json.RawMessage(`{"a": 2}`)), `echo of {"a": 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			script := conversetest.NewScript(says(call, `{"name":"files__echo","arguments":{"a": 1}}`), conversetest.Line{Text: "Done."})
			var asked []string
			talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), servers(t), &converse.Options{
				Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
					asked = append(asked, fmt.Sprintf("%s %s of %s: %s", ask.Invocation.Name, ask.Tool, ask.Ensemble, ask.Arguments))
					return test.decision, nil
				},
			})
			_, err := talk.Ask(t.Context(), canister.Text("Go."))
			if err := errors.Join(err, script.Err()); err != nil {
				t.Fatal(err)
			}
			if want := []string{`files__echo echo of files: {"a": 1}`}; !slices.Equal(asked, want) {
				t.Errorf("it asks about %q, not %q", asked, want)
			}
			results := slices.DeleteFunc(talk.History(), func(c canister.Canister) bool { return c.Kind() != canister.KindResult })
			if text := canister.TextOf(canister.ContentOf(results[0])); len(results) != 1 || !strings.Contains(text, test.result) {
				t.Errorf("the result is %q", text)
			}
		})
	}
}

// An approval that is waited for is about the tool too, and the call goes on in another
// process, which shows the model what it wrote.
func TestApprovalOfFoundToolsIsWaitedFor(t *testing.T) {
	log := history.NewMemory()
	options := &converse.Options{ID: "talk", Log: log, Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Defer(time.Hour, ""), nil
	}}
	first := conversetest.NewScript(says(call, `{"name":"files__echo","arguments":{"a": 1}}`))
	turn, err := converse.New(findtools.New(first, &findtools.Options{Tools: "tools"}), servers(t), options).Ask(t.Context(), canister.Text("Go."))
	if err != nil || turn.Reason != converse.ReasonWaiting || len(turn.Waits) != 1 {
		t.Fatalf("%+v, %v", turn, err)
	}
	answer := canister.Answer{Wait: turn.Waits[0].ID, Verdict: canister.VerdictAllow, By: "ann"}
	if err := waits.Answer(t.Context(), log, "talk", answer, time.Now()); err != nil {
		t.Fatal(err)
	}
	second := conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: shows(call, find, call+` {"name":"files__echo","arguments":{"a":1}}`)})
	talk := converse.New(findtools.New(second, &findtools.Options{Tools: "tools"}), servers(t), options)
	if turn, err = talk.Run(t.Context()); errors.Join(err, second.Err()) != nil || turn.Text() != "Done." {
		t.Fatalf("%+v, %v", turn, errors.Join(err, second.Err()))
	}
	if last := talk.History()[len(talk.History())-2]; canister.TextOf(canister.ContentOf(last)) != `echo of {"a": 1}` {
		t.Errorf("the result is %+v", last)
	}
}

// Resources are found like tools, with the tool that reads them, if the model has it.
func TestResourcesAreFound(t *testing.T) {
	notes := ensemble.New("notes", local.Library{Resources: []local.Resource{
		ensembletest.TextResource("note://onboarding", "Ask Ann."), ensembletest.TextResource("note://holidays", "In May."),
	}}.Source(), nil)
	reader, err := resourcetools.New("resources", notes)
	if err != nil {
		t.Fatal(err)
	}
	for _, others := range [][]*ensemble.Ensemble{{notes, reader}, {notes}} {
		tools, err := findtools.Ensemble("tools", others...)
		if err != nil {
			t.Fatal(err)
		}
		roster, err := ensemble.NewRoster(append(others, tools)...)
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		finder, _ := catalog.Find(find)
		output, err := finder.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{"query":"onboarding"}`)})
		if err != nil {
			t.Fatal(err)
		}
		const line = `{"resource":"note://onboarding","server":"notes",`
		text := canister.TextOf(output.Content)
		if has := strings.Contains(text, line) && strings.Contains(text, `"read_with":"resources__read_resource"}`); has != (len(others) == 2) {
			t.Errorf("with %d ensembles it finds\n%s", len(others), text)
		}
		if strings.Contains(text, "holidays") {
			t.Errorf("it finds\n%s", text)
		}
	}
	_ = notes.Close(t.Context())
}
