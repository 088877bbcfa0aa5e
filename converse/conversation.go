// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Conversation is a history of canisters and the loop that carries it on. Its
// methods may be called concurrently, but it does one piece of work at a time:
// a second Send, Continue, Step or Add meanwhile fails with [ErrBusy]. Many
// conversations can share one roster and one model.
type Conversation struct {
	model  Model // bound to this conversation
	origin Model // as it was given
	info   telemetry.ModelInfo
	roster *ensemble.Roster
	opts   Options
	named  string // Options.ID as it was given: what the keys of calls are made of
	err    error  // what was wrong with the options

	mu      sync.Mutex
	history []canister.Canister // only ever appended to
	held    held                // which of its log these are
	working *work               // the piece of work under way, or nil
	// The sizes in tokens of what the model was asked and refused as too long.
	refused, refusedPart int64
	closed               bool
	background           background      // functions of the program on their own goroutines
	writing              <-chan struct{} // closed when an append that was left behind has returned

	// Owned by the work under way:

	offered   *offer              // the tools of the latest turn
	offeredAt int                 // where in the history that turn begins
	owed      []canister.Canister // results that the journal did not take
	view      view                // what the model is told of the history

	// unmadeIntents are those that a log did not take, or did not say so, and
	// whose calls were not made.
	unmadeIntents map[string]bool

	identities map[string]struct{} // those of the history, up to identified
	identified int
}

// work is one Send, Continue, Step or Add.
type work struct {
	suspension
	leftovers
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is over
}

// New returns a conversation of model with the tools of roster, which may be
// nil for none. Nothing is connected before the first turn. Opts may be nil;
// what is wrong with them is the error of the first piece of work.
func New(model Model, roster *ensemble.Roster, opts *Options) *Conversation {
	c := &Conversation{model: model, origin: model, roster: roster, unmadeIntents: map[string]bool{}, identities: map[string]struct{}{}}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.Limits = c.opts.Limits.withDefaults()
	if c.opts.NewID == nil {
		c.opts.NewID = rand.Text
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	c.opts.Logger = event.Logger(c.opts.Logger)
	if c.named = c.opts.ID; c.named == "" {
		c.opts.ID = rand.Text()
	}
	if c.opts.WaitFor <= 0 {
		c.opts.WaitFor = defaultWaitFor
	}
	c.guardOptions()
	c.err = c.bind()
	c.history = slices.Clone(c.opts.History)
	c.opts.History = nil
	if c.err == nil {
		c.err = c.checkStart()
	}
	if c.err != nil {
		c.history = nil
	}
	return c
}

// bind asks the model what it says of itself.
func (c *Conversation) bind() (err error) {
	if binder, ok := c.origin.(Binder); ok {
		defer caught("Model.Bind", &err)
		c.model = binder.Bind()
	}
	c.info, err = describe(c.origin)
	return err
}

// describe returns what a model says of itself, if it does.
func describe(model Model) (info telemetry.ModelInfo, err error) {
	defer caught("Model.Describe", &err)
	if describer, ok := model.(Describer); ok {
		info = describer.Describe()
	}
	return info, nil
}

// checkStart says what is wrong with what the conversation begins with.
func (c *Conversation) checkStart() error {
	if c.model == nil {
		return errors.New("converse: New was given no model")
	}
	switch c.opts.Doubt {
	case "", DoubtReport, DoubtAsk:
	default:
		return fmt.Errorf("converse: Options.Doubt is %q: want %q or %q", c.opts.Doubt, DoubtReport, DoubtAsk)
	}
	if c.opts.Log != nil && c.named == "" {
		return errors.New("converse: Options has a Log and no ID: the log keeps the conversation under its ID")
	}
	if c.opts.Log != nil && len(c.history) > 0 {
		return errors.New("converse: Options has a History and a Log; a log has its own")
	}
	if err := c.opts.Compaction.check(); err != nil {
		return err
	}
	if err := c.checkBudget(); err != nil {
		return err
	}
	for i, held := range c.history {
		if err := canister.Writable(held); err != nil {
			return fmt.Errorf("converse: canister %d of the history cannot be taken up: %w", i, err)
		}
	}
	for _, problem := range canister.Check(c.history) {
		if problem.Rule != canister.RuleOpen {
			return fmt.Errorf("converse: the history cannot be taken up (canister.Repair can mend it): %v", problem)
		}
	}
	return nil
}

// ID returns the identity of the conversation.
func (c *Conversation) ID() string { return c.opts.ID }

// History returns the canisters so far. The slice is the caller's to append
// to; the canisters are shared and must not be changed.
//
// With Options.Log it may lack the beginning, which is then in the log alone: of a
// long conversation that was compacted, and whose log can tell how long it is (see
// [history.Tail]), a conversation takes up the instructions and all from the turn
// on that the newest summary stands in, so that a turn costs what the model is told
// and not what was before. Length counts all.
func (c *Conversation) History() []canister.Canister {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.history)
}

// Length returns how many canisters there are so far, those included that the log
// has and History lacks.
func (c *Conversation) Length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.length(len(c.history))
}

// Next tells what the conversation does next; see the function [Next]. With Options
// that are wrong, of which the error of Send tells, it is [Done] with [ReasonNothing].
func (c *Conversation) Next() Command {
	return Next(c.History(), c.policy(), c.opts.Now())
}

// policy is what the options say of it, and what the model has refused so far.
func (c *Conversation) policy() Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Policy{Conversation: c.opts.ID, Limits: c.opts.Limits, Compaction: c.opts.Compaction, Refused: c.refused, RefusedPart: c.refusedPart}
}

// Send adds a user's message and works until the turn is done, yielding events
// as they happen. The last event is a [TurnCompleted]; a failure of the
// runtime, such as a model that cannot be reached, is an error that ends the
// sequence. Leaving the loop, like the end of ctx, stops the work at once;
// every invocation then still has a result, and the conversation can go on.
// The user's message stays in the history whatever happens after it: Continue
// tries again, another Send would say it twice. The sequence can be ranged over once.
//
// If the history ends with invocations that lack a result, because they wait for
// somebody or a process died while they ran, Send first answers them with what is
// known of them: see [Conversation.Continue], which carries them on.
func (c *Conversation) Send(ctx context.Context, content ...canister.Content) iter.Seq2[Event, error] {
	return c.run(ctx, true, func(w *turn) {
		if len(content) == 0 {
			w.fail(errors.New("converse: Send was given no content"))
			return
		}
		w.answerPending("the conversation went on without it", false)
		user := canister.User{Content: slices.Clone(content)}
		user.Time = w.opts.Now()
		w.introduceBefore()
		w.append(user)
		w.work()
	})
}

// Ask is Send for those who only want what came of the turn. A turn that a
// limit ended is no error; see [Turn.Reason].
func (c *Conversation) Ask(ctx context.Context, content ...canister.Content) (Turn, error) {
	return last(ctx, c.Send(ctx, content...))
}

// Continue does whatever the history calls for until the turn is done:
// invocations that lack a result run, the model is asked. It takes up a
// history that was put down after any step, and does nothing more than yield
// a [TurnCompleted] when there is nothing to do.
//
// With Options.Log the history tells of an invocation that lacks a result whether
// its call was begun. If not, it runs. If it was, it runs for a second time if its
// tool is read-only or idempotent ([ensemble.Tool.Repeatable]), under the same [invoker.Call] ID; otherwise see
// Options.Doubt. Without a log Continue runs it, maybe for a second time.
func (c *Conversation) Continue(ctx context.Context) iter.Seq2[Event, error] {
	return c.run(ctx, true, (*turn).work)
}

// Run is Continue for those who only want what came of it, such as an engine
// that carries on the conversations of a log: it can be called again after any
// crash, in any process, and stops when the turn is done, or waits with
// [ReasonWaiting] for what Turn.Waits tells.
func (c *Conversation) Run(ctx context.Context) (Turn, error) { return last(ctx, c.Continue(ctx)) }

// last returns the turn that the events end with.
func last(ctx context.Context, events iter.Seq2[Event, error]) (Turn, error) {
	for event, err := range events {
		if err != nil {
			return Turn{}, err
		}
		if done, ok := event.(TurnCompleted); ok {
			return done.Turn, nil
		}
	}
	return Turn{}, context.Cause(ctx)
}

// Step does one step of [Conversation.Continue]: one exchange with the model,
// or one invocation. Unless it is interrupted it leaves what comes next to the
// next Step. Only the Step that finds nothing to do yields a [TurnCompleted].
// Within a turn, the tools grow over the steps as they do over exchanges.
func (c *Conversation) Step(ctx context.Context) iter.Seq2[Event, error] {
	return c.run(ctx, true, func(w *turn) { w.step(1) })
}

// Add appends canisters without asking the model: documents, instructions, or
// a user's message for a later Continue. Identities and times that are missing
// are filled in. All enter, or none and there is an error: what does not keep
// the rules of [canister.Check] is refused. Invocations without results may
// only stand at the end, and run with the next Continue. The metadata by which a
// compaction marks its document are left out of those that are added.
func (c *Conversation) Add(ctx context.Context, canisters ...canister.Canister) error {
	for _, err := range c.run(ctx, false, func(w *turn) { w.add(canisters) }) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close cancels the work under way, waits until it has ended, and closes the
// roster if the conversation owns it. When ctx ends first, Close returns its
// error. Functions of the program that have not returned 10 seconds after the work
// are named in the error, also that of a function that has called Close itself: it
// has to return first. Close may be called twice. It must not be called from within
// the loop over the events of the same conversation: leave the loop first.
func (c *Conversation) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	working := c.working
	c.mu.Unlock()
	err := c.end(ctx, working)
	if c.opts.OwnRoster && c.roster != nil {
		err = errors.Join(err, c.roster.Close(ctx))
	}
	return err
}

// end ends what is under way and waits for it.
func (c *Conversation) end(ctx context.Context, working *work) error {
	if working != nil {
		working.cancel(ErrClosed)
		if err := wait(ctx, working.done); err != nil {
			return fmt.Errorf("converse: closing, the work under way has not ended: %w", err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%v have passed", patience))
	defer cancel()
	return c.background.wait(ctx)
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run claims the conversation for one piece of work and gives it back after. It
// always takes up what the log has, and nothing else if do is nil.
// The work is a span if it is traced.
func (c *Conversation) run(ctx context.Context, traced bool, do func(*turn)) iter.Seq2[Event, error] {
	var ranged atomic.Bool
	return func(yield func(Event, error) bool) {
		if ranged.Swap(true) {
			yield(nil, errors.New("converse: these events were ranged over before: call the method again for another piece of work"))
			return
		}
		ctx = telemetry.WithConversation(telemetry.With(ctx, c.opts.Telemetry), c.opts.ID)
		ctx, cancel := context.WithCancelCause(invoker.WithTrusted(ctx, c.opts.Trusted...))
		defer cancel(nil)
		working := &work{cancel: cancel, done: make(chan struct{}), suspension: suspension{suspended: make(chan struct{})}}
		if err := c.claim(working); err != nil {
			yield(nil, err)
			return
		}
		defer c.release(working)
		t := &turn{Conversation: c, piece: working, ctx: ctx, cancel: cancel, yield: yield}
		t.clean, t.log = t.bounded(redact.Trusted(ctx, c.opts.Redact)), c.opts.Logger
		if secrets := redact.Trusted(ctx, nil); secrets != nil {
			t.log = t.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return redact.Core(core, secrets) }))
		}
		if traced {
			t.ctx, t.agent = telemetry.StartAgent(ctx, "", c.info)
			defer t.endTrace()
		}
		t.panicked = true // should the body of the loop
		defer func() {
			t.yielding = false
			t.left = t.left || t.panicked
			t.finish()
		}()
		t.contain(func() {
			if err := t.load(); err != nil {
				t.fail(err)
			} else if do != nil {
				t.open()
				do(t)
			}
		})
		t.panicked = false
	}
}

// open begins a history that has not begun, and writes down what was owed to it.
func (t *turn) open() {
	if len(t.history) == 0 && t.opts.Instructions != "" {
		t.append(canister.Supervisor{Content: canister.Texts(t.opts.Instructions)})
	}
	t.settle()
}

func (c *Conversation) claim(working *work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.closed:
		return ErrClosed
	case c.working != nil:
		return ErrBusy
	}
	c.working = working
	return nil
}

func (c *Conversation) release(working *work) {
	c.mu.Lock()
	c.working = nil
	c.mu.Unlock()
	close(working.done)
}
