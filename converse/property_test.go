// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

var (
	runs = flag.Int("runs", 400, "how many random conversations TestWhateverHappens holds")
	seed = flag.Uint64("seed", 0, "the only conversation that TestWhateverHappens holds; 0 for all")
)

// Whatever models, tools, approvals and callers do, and wherever the work is
// interrupted: the history is sound and only grows, the results are true, the
// audit has one record of each result, the events
// keep their order, no turn has more exchanges than it may, no goroutine stays
// behind, and the conversation can go on.
func TestWhateverHappens(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) { newWorld(t, seed).live() })
}

// eachSeed runs a test with each seed until one fails, which it names.
func eachSeed(t *testing.T, test func(t *testing.T, seed uint64)) {
	if *seed != 0 {
		synctest.Test(t, func(t *testing.T) { test(t, *seed) })
		return
	}
	for n := range uint64(*runs) {
		run := func() {
			defer func() { // even if FailNow ends the goroutine
				if t.Failed() {
					t.Logf("run again with -run=%s -seed=%d", t.Name(), n+1)
				}
			}()
			synctest.Test(t, func(t *testing.T) { test(t, n+1) })
		}
		if run(); t.Failed() {
			return
		}
	}
}

// world is one conversation with everything around it, all of it random.
type world struct {
	*testing.T
	talk *converse.Conversation
	opts converse.Options

	strays sync.WaitGroup // what tools leave behind

	mu      sync.Mutex // guards the rest
	rng     *rand.Rand
	kind    bool           // nothing bad happens any more
	closed  bool           // somebody closed the conversation meanwhile
	ran     map[string]int // how often the tool of an invocation was entered
	ended   map[string]int // how often it returned
	inside  map[string]int // how many run, by name of tool
	audited map[string]int // how many records an invocation has
	ids     int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 1)), ran: map[string]int{}, ended: map[string]int{}, inside: map[string]int{}, audited: map[string]int{}}
	w.opts = *w.options()
	w.talk = converse.New(w, w.newRoster(), &w.opts)
	return w
}

func (w *world) newRoster() *ensemble.Roster {
	roster, err := ensemble.NewRoster(ensemble.Local("local",
		w.tool("ok"), w.tool("slow"), w.tool("deaf"), w.tool("fails"), w.tool("panics"), w.tool("storm"),
		exclusive(w.tool("alone")), readOnly(w.tool("reads")), w.tool("asks")))
	if err != nil {
		w.Fatal(err)
	}
	return roster
}

func (w *world) options() *converse.Options {
	opts := &converse.Options{
		OwnRoster: true,
		Audit:     audit.New(w, nil),
		Ask:       w.answer,
		NewID:     w.newID,
		Limits: converse.Limits{
			Exchanges:   w.of(0, 1, 2, 3),
			Tokens:      int64(w.of(0, 0, 25)),
			Time:        time.Duration(w.of(0, 0, 1, 3)) * time.Second,
			Parallel:    w.of(-1, 0, 1, 2),
			FinalAnswer: w.chance(2),
			ResultBytes: w.of(0, 160),
		},
	}
	if w.chance(2) {
		opts.Approve = w.approve
	}
	if w.chance(2) {
		opts.Instructions = "Be brief."
	}
	return opts
}

// chance is true once in n times, as long as bad things may happen.
func (w *world) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.kind && w.rng.IntN(n) == 0
}

func (w *world) of(choices ...int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return choices[w.rng.IntN(len(choices))]
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id-%d", w.ids)
}

func (w *world) approve(ctx context.Context, _ converse.Approval) (converse.Decision, error) {
	switch w.of(0, 0, 0, 1, 2, 3, 4, 5) {
	case 1:
		return converse.Deny("no"), nil
	case 2:
		return converse.Change(json.RawMessage([]string{`{"x":1}`, `[]`, ``}[w.of(0, 1, 2)])), nil
	case 3:
		return converse.Allow(), errors.New("nobody is there")
	case 4:
		panic(planned)
	case 5:
		w.wait(ctx)
	}
	return converse.Allow(), nil
}

// Record makes the world an audit.
func (w *world) Record(_ context.Context, record *audit.Record) error {
	w.count(w.audited, record.Invocation, 1)
	return nil
}

// answer is that of a person.
func (w *world) answer(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if w.chance(4) {
		panic(planned)
	}
	w.wait(ctx)
	return &invoker.ElicitResult{Action: invoker.Accept}, ctx.Err()
}

// wait takes some time, or until ctx ends.
func (w *world) wait(ctx context.Context) {
	select {
	case <-time.After(time.Duration(w.of(1, 10, 1000, 2000)) * time.Millisecond):
	case <-ctx.Done():
	}
}

// tool returns a tool that does what its name says.
func (w *world) tool(name string) invoker.Invoker {
	return fn(name, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		w.count(w.ran, call.ID, 1)
		defer w.count(w.ended, call.ID, 1)
		if name != "deaf" && name != "asks" { // which may be left behind
			w.enter(name)
			defer w.count(w.inside, name, -1)
		}
		switch name {
		case "slow", "alone", "reads":
			if w.wait(ctx); ctx.Err() != nil {
				return invoker.Output{}, ctx.Err()
			}
		case "deaf":
			w.wait(context.Background())
		case "fails":
			return invoker.Output{}, &invoker.Failure{Content: canister.Texts("it failed")}
		case "panics":
			panic(planned)
		case "asks":
			for range w.of(0, 1, 2, 5) {
				_, _ = call.Sample(ctx, sampleRequest("Well?"))
				_, _ = call.Ask(ctx, &invoker.ElicitRequest{Message: "Really?"})
			}
			if w.chance(3) { // which reaches nobody after the call
				w.strays.Go(func() { _, _ = call.Sample(context.WithoutCancel(ctx), sampleRequest("Well?")) })
			}
		case "storm":
			for i := range 50 {
				call.Report(invoker.Progress{Done: float64(i)})
				go call.Report(invoker.Progress{Done: float64(i)})
			}
		}
		return invoker.Output{Content: canister.Texts("it is " + name + strings.Repeat(".", w.of(0, 300)))}, nil
	})
}

func (w *world) count(counts map[string]int, id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts[id] += n
}

// enter counts a tool in, and judges whether it is alone that wants to be.
func (w *world) enter(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[name]++
	others := 0
	for _, n := range w.inside {
		others += n
	}
	if w.inside["alone"] > 0 && others > 1 {
		w.Errorf("the tool that is to run alone does not: %v", w.inside)
	}
}

// Exchange makes the world a model.
func (w *world) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		for _, problem := range sequence.Check(request.History) {
			w.Errorf("the model is shown a broken history: %v", problem)
		}
		_ = append(request.History, canister.User{}) // must not reach the conversation
		for w.chance(2) {
			time.Sleep(time.Duration(w.of(0, 1, 300)) * time.Millisecond) // heedless of ctx
			if !yield(converse.Delta{Text: "a"}, nil) || w.chance(5) && !yield(nil, nil) {
				return
			}
		}
		if w.chance(4) {
			w.wait(ctx)
		}
		switch {
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		case w.chance(20):
			yield(nil, &converse.ModelError{Message: "the server is on fire"})
		case w.chance(30):
			panic(planned)
		case !w.chance(30):
			yield(w.reply(request), nil)
		}
	}
}

func (w *world) reply(request *converse.Request) converse.Reply {
	reply := converse.Reply{Message: canister.Assistant{Finish: canister.FinishStop, Usage: &canister.Usage{Input: 10}}}
	reply.Message.ID = request.NewID()
	for i := range w.of(0, 0, 1, 3, 9) {
		if w.kind {
			break
		}
		reply.Invocations = append(reply.Invocations, canister.Invocation{
			Head:    canister.Head{ID: request.NewID()},
			Message: reply.Message.ID,
			CallID:  fmt.Sprint("call ", i),
			Name: "local__" + []string{
				"ok", "slow", "deaf", "fails", "panics", "storm", "alone", "reads", "asks", "nobody",
			}[w.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)],
			Arguments: []string{`{}`, ``, `{"a":1}`, `{"a`}[w.of(0, 0, 1, 2, 3)],
		})
	}
	if w.chance(20) {
		w.spoil(&reply, request)
	}
	return reply
}

// spoil breaks one of the rules for replies.
func (w *world) spoil(reply *converse.Reply, request *converse.Request) {
	reply.Message.ID = []string{"", reply.Message.ID, request.History[0].Header().ID}[w.of(0, 1, 2)]
	for i := range reply.Invocations {
		switch v := &reply.Invocations[i]; w.of(0, 1, 2, 3, 4) {
		case 1:
			v.ID = reply.Invocations[0].ID
		case 2:
			v.CallID = reply.Invocations[0].CallID
		case 3:
			v.Message = "another"
		case 4:
			v.ID, v.CallID = "", ""
		}
	}
}

const planned = "as planned"

// live is the life of the world: work, interrupted or not, and at last a turn
// in which nothing goes wrong.
func (w *world) live() {
	defer w.strays.Wait()
	for range w.of(1, 3, 6) {
		before := w.talk.History()
		kind := w.of(0, 0, 0, 1, 2, 3)
		interrupted := w.work(kind)
		w.judge(before, kind, interrupted)
		if w.closed || w.chance(3) {
			w.move()
		}
	}
	w.mu.Lock()
	w.kind = true
	w.mu.Unlock()
	turn, err := w.talk.Ask(context.Background(), canister.Text("And now?"))
	if err != nil || turn.Reason.Limited() && turn.Exchanges == 0 {
		w.Errorf("at last: %+v, %v", turn, err)
	}
	sound(w, w.talk.History())
	if err := w.talk.Close(context.Background()); err != nil {
		w.Error(err)
	}
}

// move takes the conversation up in another process.
func (w *world) move() {
	w.closed = false
	history := w.talk.History()
	if err := w.talk.Close(context.Background()); err != nil {
		w.Error(err)
	}
	next := w.talk.Next()
	for _, open := range canister.Pending(history) {
		delete(w.ran, open.ID) // of a result that could not be written, the new process knows nothing
		delete(w.audited, open.ID)
	}
	opts := w.opts
	opts.History = through(w.T, history)
	w.talk = converse.New(w, w.newRoster(), &opts)
	if got := w.talk.Next(); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", next) {
		w.Errorf("next is %T, was %T", got, next)
	}
}

// work does one Send, Continue, Step or Add, and reports whether its context
// ended, its loop was left, or it panicked.
func (w *world) work(kind int) (interrupted bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.chance(10) {
		var closing sync.WaitGroup
		timer := time.AfterFunc(time.Duration(w.of(1, 1e6, 1e9)), func() {
			closing.Go(func() {
				if err := w.talk.Close(context.Background()); err != nil {
					w.Error(err)
				}
			})
		})
		defer func() { // with a conversation that is not closed
			timer.Stop()
			synctest.Wait()
			closing.Wait()
			w.closed = true
		}()
	}
	if w.chance(3) {
		defer time.AfterFunc(time.Duration(1+w.of(0, 1e6, 1e9, 2e9)), cancel).Stop()
	}
	defer func() {
		if value := recover(); value != nil {
			if interrupted = true; value != planned {
				panic(value)
			}
		}
	}()
	if kind == 3 {
		return w.talk.Add(ctx, canister.Document{Content: canister.Texts("Read this.")}) != nil
	}
	leave, order := w.of(-1, -1, 1, 2, 4, 8, 16, 32), newOrder(w)
	for event, err := range []iter.Seq2[converse.Event, error]{
		w.talk.Send(ctx, canister.Text("Go.")), w.talk.Continue(ctx), w.talk.Step(ctx),
	}[kind] {
		if _, ok := event.(converse.TextDelta); ok && ctx.Err() != nil {
			w.Error("there was a delta after the end of the context")
		}
		order.see(event, err)
		if leave--; leave == 0 {
			if w.chance(4) {
				panic(planned)
			}
			return true
		}
		if w.chance(50) {
			cancel()
		}
	}
	order.end(kind)
	return ctx.Err() != nil
}

// judge looks at what a piece of work has left behind.
func (w *world) judge(before []canister.Canister, kind int, interrupted bool) {
	history := w.talk.History()
	if len(history) < len(before) {
		w.Errorf("the history has %d canisters, and had %d", len(history), len(before))
	}
	for i, c := range history {
		if i < len(before) && c.Header().ID != before[i].Header().ID {
			w.Errorf("canister %d has changed", i)
		}
		if result, ok := c.(canister.Result); ok {
			w.judgeResult(result)
		}
	}
	for _, problem := range sequence.Check(history) {
		switch {
		case problem.Rule != sequence.RuleOpen:
			w.Errorf("the history is not sound: %v", problem)
		case kind == 0 || kind == 1 && !interrupted:
			w.Errorf("an invocation was left open: %v", problem)
		}
	}
	for id, n := range w.ran {
		if n > 1 {
			w.Errorf("the tool of %s ran %d times", id, n)
		}
	}
}

func (w *world) judgeResult(result canister.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := canister.TextOf(result.Content)
	denies := strings.Contains(text, "not started") || strings.Contains(text, "not called") || strings.Contains(text, "There is no tool")
	// What else the result says may have been cut off.
	open := strings.Contains(text, "was interrupted") || strings.Contains(text, "was begun") || strings.Contains(text, "can be called again")
	id := result.Invocation
	switch {
	case w.audited[id] != 1:
		w.Errorf("the invocation %s has %d records", id, w.audited[id])
	case denies && w.ran[id] > 0:
		w.Errorf("the result says %q, but the tool ran", text)
	case result.Code == "" && w.ended[id] == 0:
		w.Errorf("the tool of %s succeeded without running", id)
	case w.ran[id] == 0 && !denies && !open:
		w.Errorf("the tool did not run, and the result says %q", text)
	case len(text) > 600:
		w.Errorf("the result has %d bytes", len(text))
	}
}

// order judges the events of one piece of work.
type order struct {
	*world
	last    string
	started map[string]bool
	stated  map[string]bool // a person has said that the call took effect
	over    map[string]bool
}

func newOrder(w *world) *order {
	return &order{w, "", map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (o *order) see(event converse.Event, err error) {
	o.Helper()
	if o.last == "error" || o.last == "TurnCompleted" {
		o.Errorf("%T and %v after %s", event, err, o.last)
	}
	if err != nil {
		o.last = "error"
		return
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", event), "converse.")
	if (o.last == "") != (name == "TurnStarted") && name != "TurnCompleted" {
		o.Errorf("%s after %q", name, o.last)
	}
	o.last = name
	switch event := event.(type) {
	case converse.WaitEnded:
		o.stated[event.Wait.Invocation] = event.Answer.Verdict == canister.VerdictDone
	case converse.InvocationStarted:
		o.started[event.Invocation.ID] = true
	case converse.InvocationProgressed:
		if id := event.Invocation.ID; !o.started[id] || o.over[id] {
			o.Errorf("progress of %s: started %t, over %t", id, o.started[id], o.over[id])
		}
	case converse.InvocationCompleted:
		id := event.Invocation.ID
		if o.over[id] || event.Result.Code == "" && !o.started[id] && !o.stated[id] {
			o.Errorf("completed %s: started %t, over %t", id, o.started[id], o.over[id])
		}
		o.over[id] = true
	case converse.TurnCompleted:
		most := cmp.Or(o.opts.Limits.Exchanges, converse.DefaultExchanges)
		if o.opts.Limits.FinalAnswer {
			most++
		}
		if event.Turn.Exchanges > most {
			o.Errorf("the turn has %d exchanges, and may have %d", event.Turn.Exchanges, most)
		}
	}
}

// end judges the last event of a loop that was not left.
func (o *order) end(kind int) {
	if o.last != "error" && o.last != "TurnCompleted" && kind != 2 {
		o.Errorf("the last event is %q", o.last)
	}
}
