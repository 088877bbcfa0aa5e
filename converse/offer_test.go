// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

func rosterOf(t testing.TB, ensembles ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return roster
}

// offers expects a request to describe exactly these tools.
func offers(names ...string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		var got []string
		for _, definition := range request.Tools.Definitions {
			got = append(got, definition.Name)
		}
		if fmt.Sprint(got) != fmt.Sprint(names) {
			return fmt.Errorf("offered %q, want %q", got, names)
		}
		return nil
	}
}

// describing notes how the tools of each request are described.
type describing struct {
	*conversetest.Script
	requests []string
}

func (d *describing) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	var lines []string
	for _, definition := range request.Tools.Definitions {
		lines = append(lines, definition.Name+"="+definition.Description)
	}
	d.requests = append(d.requests, strings.Join(lines, " "))
	return d.Script.Exchange(ctx, request)
}

func withDescription(i invoker.Invoker, description string) invoker.Invoker {
	i.Definition().Description = description
	return i
}

// Tools that a server adds during a turn are offered behind the others from the
// next exchange on. What else it changes is seen by the next turn.
func TestToolsGrowWithinATurn(t *testing.T) {
	source := ensembletest.NewSource()
	source.SetLibrary(local.Library{}) // such a connection says at once what has changed
	first := fn("first", func(context.Context, *invoker.Call) (invoker.Output, error) {
		source.SetTools(withDescription(echo("stays"), "changed"), echo("new"), echo("another"))
		return invoker.Output{}, nil
	})
	source.SetTools(first, withDescription(echo("stays"), "as it was"))
	roster := rosterOf(t, ensemble.New("server", source, nil))
	calls := func(names ...string) (list []conversetest.Call) {
		for _, name := range names {
			list = append(list, conversetest.Call{Name: "server__" + name, Arguments: "{}"})
		}
		return list
	}
	script := conversetest.NewScript(
		conversetest.Line{Calls: calls("first")},
		conversetest.Line{Calls: calls("new")},
		conversetest.Line{Expect: told("new {}"), Calls: calls("stays")},
		conversetest.Line{Expect: told("stays {}"), Calls: calls("first")},
		conversetest.Line{Expect: told("no longer offers"), Text: "Done."},
		conversetest.Line{Text: "I see."},
	)
	model := &describing{Script: script}
	talk := converse.New(model, roster, nil)
	events := play(t, talk, "Go.")
	next := play(t, talk, "Again.")
	played(t, script)
	const begin = "server__first= server__stays=as it was"
	const grown = begin + " server__another= server__new="
	want := []string{begin, grown, grown, grown, grown, "server__another= server__new= server__stays=changed"}
	if fmt.Sprint(model.requests) != fmt.Sprint(want) {
		t.Errorf("the tools were\n%s\nwant\n%s", strings.Join(model.requests, "\n"), strings.Join(want, "\n"))
	}
	var added []converse.ToolsAdded
	for _, event := range events {
		if event, ok := event.(converse.ToolsAdded); ok {
			added = append(added, event)
		}
	}
	if len(added) != 1 || fmt.Sprint(added[0]) != "{4 [server__another server__new] []}" {
		t.Errorf("added: %v", added)
	}
	started := next[0].(converse.TurnStarted)
	if got := fmt.Sprint(started.Added, started.Removed); got != "[] [server__first]" {
		t.Errorf("added and removed in the next turn: %s", got)
	}
}

// Another process that carries a turn on offers what was added behind the others.
func TestAddedToolsKeepTheirPlaceInAnotherProcess(t *testing.T) {
	source := ensembletest.NewSource()
	source.SetLibrary(local.Library{})
	var tools []invoker.Invoker
	grow := func(name string, more ...string) invoker.Invoker {
		return fn(name, func(context.Context, *invoker.Call) (invoker.Output, error) {
			for _, tool := range more {
				tools = append(tools, echo(tool))
			}
			source.SetTools(tools...)
			return invoker.Output{}, nil
		})
	}
	tools = []invoker.Invoker{grow("m", "z", "b"), grow("n", "a")}
	source.SetTools(tools...)
	roster := rosterOf(t, ensemble.New("server", source, nil))
	line := func(tool string) conversetest.Line {
		return conversetest.Line{Calls: []conversetest.Call{{Name: "server__" + tool, Arguments: "{}"}}}
	}
	model := &describing{Script: conversetest.NewScript(line("m"), line("n"), line("a"), conversetest.Line{Text: "Done."})}
	talk := converse.New(model, roster, nil)
	play(t, talk, "Go.")
	want := model.requests[3]
	if want != "server__m= server__n= server__b= server__z= server__a=" {
		t.Fatalf("the tools were %s", want)
	}
	history := talk.History()
	other := &describing{Script: conversetest.NewScript(conversetest.Line{Text: "Done."})}
	if _, err := converse.New(other, roster, &converse.Options{History: history[:len(history)-1]}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other.requests[0] != want {
		t.Errorf("another process offers\n%s\nwant\n%s", other.requests[0], want)
	}
}

// An ensemble that is away is no error, and a tool of it is said to be away.
func TestAwayIsNotFatal(t *testing.T) {
	source := ensembletest.NewSource(echo("x"))
	source.Fail(ensembletest.Open, 100, errors.New("connection refused"))
	roster := rosterOf(t, ensemble.New("broken", source, nil), ensemble.Local("local", echo("a")))
	script := conversetest.NewScript(
		conversetest.Line{Expect: offers("local__a"), Calls: []conversetest.Call{{Name: "broken__x", Arguments: "{}"}, call("a", "{}")}},
		conversetest.Line{Text: "ok"},
	)
	talk := converse.New(script, roster, nil)
	events := play(t, talk, "Go.")
	played(t, script)
	if away := events[0].(converse.TurnStarted).Away; len(away) != 1 || away[0].Ensemble != "broken" {
		t.Errorf("away = %v", away)
	}
	found := results(talk.History())
	if text := canister.TextOf(found[0].Content); !strings.Contains(text, `"broken" are not available`) || found[1].Code != "" {
		t.Errorf("the results are %q and %q", text, found[1].Code)
	}
}

func TestRequiredEnsembleIsFatal(t *testing.T) {
	source := ensembletest.NewSource(echo("x"))
	source.Fail(ensembletest.Open, 100, errors.New("connection refused"))
	roster := rosterOf(t, ensemble.New("needed", source, &ensemble.Options{Required: true}))
	_, err := converse.New(conversetest.NewScript(), roster, nil).Ask(t.Context(), canister.Text("Go."))
	if err == nil || !strings.Contains(err.Error(), "needed") {
		t.Errorf("err = %v", err)
	}
}

// picky is a model that cannot be offered tools with a certain name.
type picky struct{ *conversetest.Script }

func (picky) Screen(definition *invoker.Definition) error {
	if strings.Contains(definition.Name, "odd") {
		return errors.New("its schema is odd")
	}
	return nil
}

func TestScreenedToolIsSetAside(t *testing.T) {
	script := conversetest.NewScript(
		conversetest.Line{Expect: offers("local__a"), Calls: []conversetest.Call{call("odd", "{}")}},
		conversetest.Line{Expect: told("set aside: its schema is odd"), Calls: []conversetest.Call{call("odb", "{}")}},
		conversetest.Line{Expect: func(r *converse.Request) error {
			if told("local__odd")(r) == nil {
				return errors.New("a tool that was set aside is proposed")
			}
			return nil
		}, Text: "ok"},
	)
	talk := converse.New(picky{script}, newRoster(t, echo("a"), echo("odd")), nil)
	events := play(t, talk, "Go.")
	played(t, script)
	aside := events[0].(converse.TurnStarted).Aside
	if len(aside) != 1 || aside[0].Tool != "odd" || aside[0].Reason != "its schema is odd" {
		t.Errorf("aside = %v", aside)
	}
}

// sharing notes which toolsets it was given.
type sharing struct{ seen map[*converse.Toolset]int }

func (s sharing) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		s.seen[request.Tools]++
		message := canister.Assistant{Finish: canister.FinishStop}
		message.ID = request.NewID()
		yield(converse.Reply{Message: message}, nil)
	}
}

// Conversations share one toolset, so that a model can keep what it made of it.
func TestToolsetIsShared(t *testing.T) {
	model := sharing{map[*converse.Toolset]int{}}
	roster := newRoster(t, echo("a"))
	for range 10 {
		talk := converse.New(model, roster, nil)
		play(t, talk, "Go.")
		play(t, talk, "Again.")
	}
	if len(model.seen) != 1 {
		t.Errorf("there were %d toolsets, want one", len(model.seen))
	}
}

// The same tools come in the same order, whatever order servers list them in
// and however often they are connected again.
func TestOrderOfToolsIsStable(t *testing.T) {
	source := ensembletest.NewSource()
	roster := rosterOf(t, ensemble.New("server", source, nil), ensemble.Local("local", echo("z"), echo("a")))
	var first string
	for range 1000 {
		tools := []invoker.Invoker{echo("one"), echo("two"), echo("three"), echo("four")}
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		source.SetTools(tools...)
		source.Lose(errors.New("gone"))
		catalog, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range catalog.Tools() {
			names = append(names, tool.Name())
		}
		if got := fmt.Sprint(names); first == "" {
			first = got
		} else if got != first {
			t.Fatalf("the order is %s, was %s", got, first)
		}
	}
}

// The tools of a turn stay on offer over its steps, and those that come are added.
func TestToolsStayOverSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(echo("old"))
		roster := rosterOf(t, ensemble.New("server", source, nil))
		ask := conversetest.Call{Name: "server__old", Arguments: "{}"}
		script := conversetest.NewScript(
			conversetest.Line{Expect: offers("server__old"), Calls: []conversetest.Call{ask}},
			conversetest.Line{Expect: offers("server__old", "server__new"), Text: "Done."},
			conversetest.Line{Expect: offers("server__new"), Text: "Done."},
		)
		talk := converse.New(script, roster, nil)
		for range 2 {
			if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("Go.")}); err != nil {
				t.Fatal(err)
			}
			for _, done := talk.Next().(converse.Done); !done; _, done = talk.Next().(converse.Done) {
				if err := drain(talk.Step(t.Context())); err != nil {
					t.Fatal(err)
				}
				source.SetTools(echo("new"))
				synctest.Wait()
			}
		}
		played(t, script)
	})
}

// A turn whose tools could not be had in time is no turn without tools.
func TestNothingIsAddedAfterAFailure(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			source := ensembletest.NewSource(echo("a"))
			roster := rosterOf(t, ensemble.New("server", source, nil))
			script := conversetest.NewScript(conversetest.Line{Text: "ok"}, conversetest.Line{Text: "ok"})
			talk := converse.New(script, roster, &converse.Options{Limits: converse.Limits{Time: limit}})
			for range 2 {
				release := source.Hang(ensembletest.Open, false)
				source.Lose(errors.New("gone"))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				turn, err := talk.Ask(ctx, canister.Text("Go."))
				if limit == 0 && !errors.Is(err, context.DeadlineExceeded) || limit > 0 && turn.Reason != converse.ReasonTime {
					t.Errorf("the turn is %+v, %v", turn, err)
				}
				cancel()
				release()
				time.Sleep(time.Hour) // of the bubble's clock: the failure is forgotten
				started := play(t, talk, "Go.")[0].(converse.TurnStarted)
				if started.Tools != 1 || started.Added != nil || started.Removed != nil {
					t.Errorf("%d tools, added %q, removed %q", started.Tools, started.Added, started.Removed)
				}
			}
		})
	}
}

func TestNumberOfTools(t *testing.T) {
	script := conversetest.NewScript(
		conversetest.Line{Expect: offers("local__a", "local__b"), Calls: []conversetest.Call{call("c", "{}")}},
		conversetest.Line{Expect: told("at most 2 tools"), Text: "ok"},
	)
	talk := converse.New(script, newRoster(t, echo("c"), echo("b"), echo("a")), &converse.Options{Limits: converse.Limits{Tools: 2}})
	events := play(t, talk, "Go.")
	played(t, script)
	if aside := events[0].(converse.TurnStarted).Aside; len(aside) != 1 || aside[0].Tool != "c" {
		t.Errorf("aside = %v", aside)
	}
}

// An ensemble with many tools does not push out those of another.
func TestNumberOfToolsIsShared(t *testing.T) {
	var many []invoker.Invoker
	for i := range 50 {
		many = append(many, echo(fmt.Sprintf("t%02d", i)))
	}
	roster := rosterOf(t, ensemble.Local("a", many...), ensemble.Local("b", echo("x"), echo("y")), ensemble.Local("c", many...))
	script := conversetest.NewScript(conversetest.Line{Text: "ok", Expect: func(request *converse.Request) error {
		counts := map[string]int{}
		for _, definition := range request.Tools.Definitions {
			counts[definition.Name[:1]]++
		}
		if fmt.Sprint(counts) != "map[a:9 b:2 c:9]" {
			return fmt.Errorf("offered %v", counts)
		}
		return nil
	}})
	events := play(t, converse.New(script, roster, &converse.Options{Limits: converse.Limits{Tools: 20}}), "Go.")
	played(t, script)
	if aside := events[0].(converse.TurnStarted).Aside; len(aside) != 82 {
		t.Errorf("%d tools are set aside", len(aside))
	}
}

// A tool that is there for an app alone is set aside for models, with the reason.
func TestToolsForAppsAlone(t *testing.T) {
	visible := func(name, visibility string) invoker.Invoker {
		tool := echo(name)
		if visibility != "" {
			tool.Definition().Metadata = canister.Fields{"mcp/_meta": json.RawMessage(`{"ui":{"visibility":` + visibility + `}}`)}
		}
		return tool
	}
	script := conversetest.NewScript(
		conversetest.Line{
			Expect: offers("local__all", "local__both", "local__model", "local__none", "local__odd"), Calls: []conversetest.Call{call("app", `{}`)},
		},
		conversetest.Line{Expect: told("it is only for its app"), Text: "I see."},
	)
	roster := newRoster(t, visible("all", ""), visible("app", `["app"]`), visible("model", `["model"]`),
		visible("both", `["app","model"]`), visible("none", `[]`), visible("odd", `"app"`))
	talk := converse.New(script, roster, nil)
	events := play(t, talk, "Go.")
	played(t, script)
	aside := events[0].(converse.TurnStarted).Aside
	if len(aside) != 1 || aside[0].Tool != "app" || !strings.Contains(aside[0].Reason, "_meta.ui.visibility") {
		t.Errorf("aside: %+v", aside)
	}
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := catalog.Find("local__app")
	if !ok {
		t.Fatal("a program does not find it")
	}
	if _, err := tool.Invoke(t.Context(), &invoker.Call{}); err != nil {
		t.Errorf("a program cannot call it: %v", err)
	}
}
