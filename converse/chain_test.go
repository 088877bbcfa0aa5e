// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// part is a model of a chain, with a name of its own.
type part struct {
	*conversetest.Script
	info   telemetry.ModelInfo
	refuse string // the tool that it is not offered
	most   int
	closed error
}

func newPart(name string, lines ...conversetest.Line) *part {
	return &part{Script: conversetest.NewScript(lines...), info: telemetry.ModelInfo{Name: name}}
}

func (p *part) Describe() telemetry.ModelInfo { return p.info }
func (p *part) MaxTools() int                 { return p.most }
func (p *part) Close() error                  { return p.closed }
func (p *part) Screen(definition *invoker.Definition) error {
	if definition.Name == p.refuse {
		return errors.New("no")
	}
	return nil
}
func (p *part) Shortened(definition *invoker.Definition) string {
	if definition.Name == p.refuse {
		return "cut"
	}
	return ""
}

var overloaded = &converse.ModelError{Message: "overloaded hunter2", Status: 529, Retryable: true}

func down(n int) []conversetest.Line {
	return slices.Repeat([]conversetest.Line{{Err: overloaded}}, n)
}

func says(texts ...string) (lines []conversetest.Line) {
	for _, text := range texts {
		lines = append(lines, conversetest.Line{Text: text})
	}
	return lines
}

// moves returns the moves among events.
func moves(events []converse.Event) (list []string) {
	for _, event := range events {
		if moved, ok := event.(converse.ExchangeMoved); ok {
			list = append(list, fmt.Sprintf("%s > %s: %v", moved.From, moved.To, moved.Err))
		}
	}
	return list
}

// An exchange moves to the next model, and says so as an event, in the log, in the
// traces, and with the name of the model in the history.
func TestChainMoves(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	core, lines := observer.New(zap.InfoLevel)
	first, second := newPart("first", down(1)...), newPart("second", conversetest.Line{Text: "Hello."})
	talk := converse.New(converse.Chain(first, second), nil, &converse.Options{
		Telemetry: s.Telemetry, Logger: zap.New(core),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	events := play(t, talk, "go")
	equal(t, "the moves", moves(events), []string{"first > second: model: overloaded *** (status 529)"})
	equal(t, "the events", names(events), "TurnStarted MessageStarted ExchangeMoved MessageCompleted ExchangeCompleted TurnCompleted")
	wantTree(t, s, "invoke_agent answered", "  chat first 529", "  chat second")
	wantAttributes(t, s.find(t, "chat first", 0), map[string]string{"consort.fallback": "", "gen_ai.request.model": "first"})
	wantAttributes(t, s.find(t, "chat second", 0), map[string]string{"consort.fallback": "1", "gen_ai.request.model": "second"})
	wantAttributes(t, s.find(t, "invoke_agent", 0), map[string]string{"consort.turn.exchanges": "1", "gen_ai.request.model": "first"})
	noted := lines.FilterField(zap.String("event", "model.moved")).All()
	if len(noted) != 1 || noted[0].ContextMap()["from"] != "first" || noted[0].ContextMap()["to"] != "second" ||
		noted[0].ContextMap()["error"] != "model: overloaded *** (status 529)" {
		t.Errorf("the log says %v", noted)
	}
	played(t, first.Script)
	played(t, second.Script)
}

// The history has the name of the model that answered, also if its server does not say.
func TestChainNamesTheModel(t *testing.T) {
	silent := func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}}}, nil)
	}
	chain := converse.Chain(newPart("first", down(1)...), withoutModel{model(silent)})
	turn := last(t, play(t, converse.New(chain, nil, nil), "go"))
	equal(t, "the model", turn.Answer.Model, "second")
}

// withoutModel is a model whose answers do not say which model they are from.
type withoutModel struct{ converse.Model }

func (withoutModel) Describe() telemetry.ModelInfo { return telemetry.ModelInfo{Name: "second"} }

// A model that was unavailable is asked last for a minute, then for two, until it
// answers. All conversations of the chain know.
func TestChainCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newPart("first", append(down(2), says("I am back.", "Still here.")...)...)
		second := newPart("second", says("1", "2", "3", "4")...)
		chain := converse.Chain(first, second)
		ask := func(want string, moved int) {
			t.Helper()
			events := play(t, converse.New(chain, nil, nil), "go")
			if got := last(t, events).Text(); got != want || len(moves(events)) != moved {
				t.Errorf("the answer is %q after the moves %q, want %q after %d", got, moves(events), want, moved)
			}
		}
		ask("1", 1)
		time.Sleep(time.Minute - time.Second)
		ask("2", 0)
		time.Sleep(time.Second)
		ask("3", 1)
		time.Sleep(2*time.Minute - time.Second)
		ask("4", 0)
		time.Sleep(time.Second)
		ask("I am back.", 0)
		ask("Still here.", 0)
	})
}

// A model that was unavailable is still asked if the others are unavailable too. If all
// fail, the error says how each did, and that trying again can help.
func TestChainAllDown(t *testing.T) {
	first := newPart("first", append(down(1), says("Hello.")...)...)
	second := newPart("second", conversetest.Line{Err: &converse.ModelError{Message: "no credit", Status: 402}}, conversetest.Line{Err: overloaded})
	chain := converse.Chain(first, second)
	_, err := converse.New(chain, nil, nil).Ask(t.Context(), canister.Text("go"))
	failed, ok := errors.AsType[*converse.ModelError](err)
	if !ok || failed.Status != 402 || !failed.Retryable || !strings.Contains(err.Error(), "no credit [before that, first failed: overloaded hunter2]") {
		t.Errorf("the error is %v", err)
	}
	turn, err := converse.New(chain, nil, nil).Ask(t.Context(), canister.Text("go"))
	if err != nil || turn.Text() != "Hello." {
		t.Errorf("the answer is %q, %v", turn.Text(), err)
	}
}

// An error of a model that is no ModelError has the failures of the others too.
func TestChainEndsWithAnyError(t *testing.T) {
	broken := errors.New("broken")
	chain := converse.Chain(newPart("first", down(1)...), newPart("second", conversetest.Line{Err: broken}))
	_, err := converse.New(chain, nil, nil).Ask(t.Context(), canister.Text("go"))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "broken [before that, first failed: overloaded hunter2]") {
		t.Errorf("the error is %v", err)
	}
}

// Once a piece of the answer was shown, the exchange fails. The next one begins with the
// first model again.
func TestChainKeepsToAnAnswer(t *testing.T) {
	first := newPart("first", conversetest.Line{Text: "Half", Err: overloaded},
		conversetest.Line{Reasoning: "Hm", Err: overloaded}, conversetest.Line{Text: "Whole."})
	second := newPart("second")
	talk := converse.New(converse.Chain(first, second), nil, nil)
	text := ""
	for event, err := range talk.Send(t.Context(), canister.Text("go")) {
		if delta, ok := event.(converse.TextDelta); ok {
			text += delta.Text
		}
		if err != nil && !errors.Is(err, overloaded) {
			t.Error(err)
		}
	}
	equal(t, "the text", text, "Half")
	if _, err := talk.Run(t.Context()); !errors.Is(err, overloaded) {
		t.Errorf("after reasoning the error is %v", err)
	}
	turn, err := talk.Run(t.Context())
	if err != nil || turn.Text() != "Whole." {
		t.Errorf("the answer is %q, %v", turn.Text(), err)
	}
	played(t, second.Script)
}

// An exchange that ends for another reason than the model does not move.
func TestChainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := newPart("second")
		ask := func(first converse.Model, opts *converse.Options, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			turn, err := converse.New(converse.Chain(first, second), nil, opts).Ask(ctx, canister.Text("go"))
			if got := fmt.Sprint(turn.Reason, err); !strings.Contains(got, want) {
				t.Errorf("the turn ends with %s, want %s", got, want)
			}
		}
		hanging := newPart("first", conversetest.Line{Wait: make(chan struct{})})
		late := model(func(*converse.Request, func(converse.ModelEvent, error) bool) { panic("hunter2") })
		ask(hanging, nil, "the turn was interrupted")
		hanging = newPart("first", conversetest.Line{Wait: make(chan struct{})})
		ask(hanging, &converse.Options{Limits: converse.Limits{Time: time.Minute}}, "time_limit")
		p := policy(budget.Cap{Scope: budget.Conversation, Time: time.Minute})
		hanging = newPart("first", conversetest.Line{Wait: make(chan struct{})})
		ask(hanging, &converse.Options{Budget: p}, "budget")
		ask(late, nil, "Model.Exchange panicked")
		ask(newPart("first", conversetest.Line{Err: errors.New("odd")}), nil, "odd")
		gone, cancel := context.WithCancel(t.Context())
		closing := model(func(_ *converse.Request, yield func(converse.ModelEvent, error) bool) {
			cancel()
			yield(nil, &converse.ModelError{Message: "the connection was closed", Retryable: true})
		})
		for event, err := range converse.Chain(closing, second).Exchange(gone, &converse.Request{Tools: &converse.Toolset{}}) {
			if err == nil {
				t.Errorf("after the end of the context there is a %T", event)
			}
		}
		played(t, second.Script)
	})
}

// A fallback that panics fails the exchange and nothing else.
func TestChainPanics(t *testing.T) {
	bad := model(func(*converse.Request, func(converse.ModelEvent, error) bool) { panic("hunter2") })
	talk := converse.New(converse.Chain(newPart("first", append(down(1), says("Hello.")...)...), bad), nil, nil)
	if _, err := talk.Ask(t.Context(), canister.Text("go")); err == nil || !strings.Contains(err.Error(), "Model.Exchange") {
		t.Errorf("the error is %v", err)
	}
	if _, err := talk.Run(t.Context()); err == nil { // first is asked last, and bad comes before
		t.Error("the panic is gone")
	}
}

// A tool is offered if every model accepts it, and as many as every model accepts.
func TestChainTools(t *testing.T) {
	first, second := newPart("first", says("Hello.")...), newPart("second")
	second.refuse, first.most, second.most = "local__b", 5, 2
	chain := converse.Chain(first, second)
	events := play(t, converse.New(chain, newRoster(t, echo("a"), echo("b"), echo("c"), echo("d")), nil), "go")
	var aside []string
	for _, a := range events[0].(converse.TurnStarted).Aside {
		aside = append(aside, a.Tool+": "+a.Reason)
	}
	equal(t, "set aside", aside, []string{"b: the fallback second: no", "d: the model's API accepts 2 tools per request"})
	if got := chain.Shortened(&invoker.Definition{Name: "local__b"}); got != "the fallback second: cut" {
		t.Errorf("shortened: %q", got)
	}
}

// An empty chain and a nil model are errors. A chain within a chain is replaced by its
// models, equal names are told apart, and Close closes all models.
func TestChainOfWhat(t *testing.T) {
	for _, chain := range []*converse.ModelChain{
		converse.Chain(), converse.Chain(nil), converse.Chain(newPart("first", says("Hello.")...), nil),
		converse.Chain(converse.Chain()), converse.Chain((*converse.ModelChain)(nil)),
	} {
		if _, err := converse.New(chain, nil, nil).Ask(t.Context(), canister.Text("go")); err == nil ||
			!strings.Contains(err.Error(), "chain") && !strings.Contains(err.Error(), "Chain") {
			t.Errorf("the error of a conversation is %v", err)
		}
		if err := conversation(chain); err == nil {
			t.Error("the exchange has no error")
		}
	}
	parts := []*part{newPart("same", down(1)...), newPart("same", down(1)...), newPart("", says("Hello.")...)}
	parts[1].info.Address = "other"
	parts[0].closed, parts[2].closed = errors.New("closed 0"), errors.New("closed 2")
	chain := converse.Chain(parts[0], converse.Chain(parts[1], parts[2]))
	equal(t, "the moves", moves(play(t, converse.New(chain, nil, nil), "go")), []string{
		"same > same at other: " + overloaded.Error(), "same at other > model 3: " + overloaded.Error(),
	})
	if err := chain.Close(); err == nil || err.Error() != "closed 0\nclosed 2" {
		t.Errorf("Close returns %v", err)
	}
}

// conversation returns the error of an exchange without a conversation.
func conversation(m converse.Model) (failed error) {
	for _, err := range m.Exchange(context.Background(), &converse.Request{Tools: &converse.Toolset{}}) {
		failed = errors.Join(failed, err)
	}
	return failed
}

// What tools ask the model and summaries move too.
func TestChainAside(t *testing.T) {
	first := newPart("first", conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}}, conversetest.Line{Err: overloaded})
	second := newPart("second", says("blue", "done")...)
	talk := converse.New(converse.Chain(first, second), newRoster(t, asker("ask", 1)), nil)
	turn := last(t, play(t, talk, "go"))
	if got := canister.TextOf(results(talk.History())[0].Content); got != "blue/script/endTurn" || turn.Text() != "done" {
		t.Errorf("the tool was told %q, and the answer is %q", got, turn.Text())
	}
	writer := &narrow{window: 1 << 20, summary: "They talked."}
	compaction := &converse.Compaction{Window: 9000, Model: converse.Chain(newPart("first", down(1)...), writer)}
	events := play(t, grown(t, &narrow{}, converse.Options{Compaction: compaction}), "hello")
	equal(t, "the moves of the summary", moves(events), []string{"first > model 2: " + overloaded.Error()})
	equal(t, "the summaries", len(writer.summaries), 1)
}

// Each model spends with its own price, needs one under a cap of money, and an answer
// that was refused costs nothing. The counts of a model hold for that model alone.
func TestChainSpends(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Conversation, Money: 1000 * budget.Unit})
	p.Prices = map[string]budget.Price{"first": {Input: 1000 * budget.Unit, Output: 1000 * budget.Unit}, "second": {Input: budget.Unit, Output: budget.Unit}}
	used := &canister.Usage{Input: 1000, Output: 1000}
	chain := func() converse.Model {
		return converse.Chain(newPart("first", down(1)...), newPart("second", conversetest.Line{Text: "Hello.", Usage: used}))
	}
	turn := last(t, play(t, converse.New(chain(), nil, &converse.Options{ID: "talk", Budget: p}), "go"))
	equal(t, "spent", turn.Spent, budget.Amount{Tokens: 2000, Money: 2000})
	if s := standing(t, p); s.Spent.Money != 2000 || s.Reserved.Money != 0 {
		t.Errorf("the ledger has %+v", s)
	}
	// A refusal has a price if the server had answered a part before.
	refusal := &converse.ModelError{Message: "overloaded", Status: 529, Usage: &canister.Usage{Input: 30, Output: 12}}
	alone := policy(tokens(1_000_000))
	_, err := converse.New(
		newPart("script", conversetest.Line{Err: refusal}), nil, &converse.Options{ID: "talk", Budget: alone},
	).Ask(t.Context(), canister.Text("go"))
	if !errors.Is(err, refusal) {
		t.Errorf("the error is %v", err)
	}
	spent(t, alone, 42, 42)
	// Its cost is unknown if an answer broke off before.
	broken := converse.Retry{Attempt: 1, Err: &converse.ModelError{Message: "the stream broke off", Status: 200, Retryable: true}}
	for _, test := range []struct {
		before   converse.Retry
		from, to int64
	}{{broken, 1, 1_000_000}, {converse.Retry{Attempt: 1, Err: overloaded}, 0, 0}} {
		p := policy(tokens(1_000_000))
		model := newPart("script", conversetest.Line{Retries: []converse.Retry{test.before}, Err: overloaded})
		if _, err := converse.New(model, nil, &converse.Options{ID: "talk", Budget: p}).Ask(t.Context(), canister.Text("go")); err == nil {
			t.Error("the exchange has not failed")
		}
		spent(t, p, test.from, test.to)
	}
	delete(p.Prices, "second")
	if _, err := converse.New(chain(), nil, &converse.Options{ID: "talk", Budget: p}).Ask(t.Context(),
		canister.Text("go")); err == nil || !strings.Contains(err.Error(), `"second"`) {
		t.Errorf("without a price the error is %v", err)
	}
	// The usage of script counts for script and not for second.
	long := strings.Repeat("word ", 4000)
	little := &canister.Usage{Input: 10, Output: 10}
	for name, want := range map[string][2]int64{"script": {1, 2000}, "second": {20_000, 30_000}} {
		p := policy(tokens(1_000_000))
		p.Answer = 20
		first := newPart("script", conversetest.Line{Text: "Yes.", Usage: little}, conversetest.Line{Err: overloaded})
		second := newPart(name, conversetest.Line{Text: "Hello."})
		talk := converse.New(converse.Chain(first, second), nil, &converse.Options{ID: "talk", Budget: p})
		play(t, talk, long)
		if got := last(t, play(t, talk, "again")).Spent.Tokens; got < want[0] || got > want[1] {
			t.Errorf("%s: %d tokens count, want %v", name, got, want)
		}
	}
}
