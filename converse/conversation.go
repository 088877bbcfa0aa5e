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
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/logtail"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Conversation is a history of canisters and the loop that carries it on. Its methods
// may be called concurrently, but it does one piece of work at a time, which is a Send,
// Continue, Step, Compact or Add: while one runs, another fails with [ErrBusy]. The work
// of a method that returns a sequence is done while the caller ranges over it, which is
// possible once. Many conversations can share one roster and one model.
type Conversation struct {
	model   Model // bound to this conversation
	origin  Model // as passed to New
	info    telemetry.ModelInfo
	roster  *ensemble.Roster
	opts    Options
	givenID string // Options.ID as it was set: part of the keys of calls
	err     error  // the error in the options, if any

	mu      sync.Mutex
	history []canister.Canister // only ever appended to
	held    logtail.Map         // how history maps to the log
	working *work               // the piece of work under way, or nil
	// The sizes in tokens of the requests that the model refused as too long.
	refused, refusedPart int64
	closed               bool
	background           foreign.Background // functions of the program on their own goroutines
	writing              <-chan struct{}    // closed when an append that was left behind has returned

	// Owned by the work under way:

	offered   *offer              // the tools of the latest turn
	offeredAt int                 // where in the history that turn begins
	owed      []canister.Canister // results that the log did not accept
	view      compaction.View     // how requests show the history to the model

	// unmadeIntents are the intents that a log did not accept, or did not confirm, and
	// whose calls were not made.
	unmadeIntents map[string]bool

	identities map[string]struct{} // the IDs in history[:identified]
	identified int
}

// work is one Send, Continue, Step or Add.
type work struct {
	suspension context.Context // ends when suspend is called
	suspend    context.CancelFunc
	leftovers  foreign.Leftovers
	cancel     context.CancelCauseFunc
	done       chan struct{} // closed when it is over
}

// OpenFunc returns the conversation with the given ID, which must be its Options.ID.
// Clients that know the ID of a conversation can continue it, so IDs that a runtime makes
// cannot be guessed. An OpenFunc may be called concurrently. The caller's trusted values are
// in ctx, and in the context of every turn.
type OpenFunc func(ctx context.Context, id string) (*Conversation, error)

// New returns a conversation of model with the tools of roster, which may be nil for
// none. Nothing is connected before the first turn. Opts may be nil; the first piece of
// work returns an error if they are invalid. An idle conversation that has no log and does
// not own its roster (Options.OwnRoster) holds nothing that Close must release.
func New(model Model, roster *ensemble.Roster, opts *Options) *Conversation {
	c := &Conversation{model: model, origin: model, roster: roster, unmadeIntents: map[string]bool{}, identities: map[string]struct{}{}}
	if opts != nil {
		c.opts = *opts
		c.opts.Trusted, c.opts.Identity = slices.Clone(opts.Trusted), slices.Clone(opts.Identity)
	}
	c.opts.Limits = c.opts.Limits.withDefaults()
	if c.opts.NewID == nil {
		c.opts.NewID = rand.Text
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	c.opts.Logger = logevent.Logger(c.opts.Logger)
	if c.givenID = c.opts.ID; c.givenID == "" {
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

// bind binds the model, if it is a Binder, and asks for its description.
func (c *Conversation) bind() (err error) {
	if binder, ok := c.origin.(Binder); ok {
		defer foreign.Caught("Model.Bind", &err)
		c.model = binder.Bind()
	}
	c.info, err = describe(c.origin)
	return err
}

// describe returns a model's description of itself, if it has one.
func describe(model Model) (info telemetry.ModelInfo, err error) {
	defer foreign.Caught("Model.Describe", &err)
	if chain, ok := model.(*ModelChain); ok && chain.err != nil {
		return info, chain.err
	}
	if describer, ok := model.(Describer); ok {
		info = describer.Describe()
	}
	return info, nil
}

// checkStart returns an error if the options or the initial history are invalid.
func (c *Conversation) checkStart() error {
	if c.model == nil {
		return errors.New("converse: New needs a model")
	}
	if c.opts.Log != nil && c.givenID == "" {
		return errors.New("converse: Options.Log needs Options.ID, under which the log stores the conversation")
	}
	if c.opts.Log != nil && len(c.history) > 0 {
		return errors.New("converse: Options has both History and Log; with a Log, the history is read from it")
	}
	if err := c.opts.Compaction.check(); err != nil {
		return err
	}
	if err := c.checkBudget(); err != nil {
		return err
	}
	for i, held := range c.history {
		if err := canister.Writable(held); err != nil {
			return fmt.Errorf("converse: canister %d of the history is not valid: %w", i, err)
		}
	}
	for _, problem := range sequence.Check(c.history) {
		if problem.Rule != sequence.RuleOpen {
			return fmt.Errorf("converse: the history is not valid (sequence.Repair can repair it): %v", problem)
		}
	}
	return nil
}

// ID returns the ID of the conversation.
func (c *Conversation) ID() string { return c.opts.ID }

// History returns the canisters so far. The caller may append to the slice; the
// canisters are shared and must not be changed.
//
// With Options.Log the beginning may be missing and only be in the log. If a long
// conversation was compacted, and its log can return its length (see [history.Tail]),
// the conversation loads only the instructions and the canisters from the turn on that
// contains the newest summary. The cost of a turn then depends on the size of the
// requests, not on the length of the conversation. Length counts all canisters.
func (c *Conversation) History() []canister.Canister {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.history)
}

// Length returns the number of canisters so far, including canisters that are only in
// the log and not in History.
func (c *Conversation) Length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Length(len(c.history))
}

// Next returns the conversation's next step; see the function [Next]. If the Options
// are invalid, it is [Done] with [ReasonNothing]; Send returns the error.
func (c *Conversation) Next() Command {
	return Next(c.History(), c.policy(), c.opts.Now())
}

// policy returns the policy from the options and from the model's refusals so far.
func (c *Conversation) policy() Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Policy{Conversation: c.opts.ID, Limits: c.opts.Limits, Compaction: c.opts.Compaction, Refused: c.refused, RefusedPart: c.refusedPart}
}

// Send adds a user's message and works until the turn is done, yielding events as they
// happen. The last event is a [TurnCompleted]; a failure of the runtime, such as a
// model that cannot be reached, is an error that ends the sequence. Leaving the loop,
// like the end of ctx, stops the work; every invocation then still has a
// result, and the conversation can go on. The user's message stays in the history
// whatever happens after it: Continue tries again, while another Send would add the
// message twice. Nothing happens until the sequence is ranged over.
//
// If the history ends with invocations that lack a result, because they wait for an
// answer or a process died while they ran, Send first gives them results that say
// whether they may have taken effect; use [Conversation.Continue] to carry them on
// instead.
func (c *Conversation) Send(ctx context.Context, content ...canister.Content) iter.Seq2[Event, error] {
	return c.run(ctx, true, func(w *turn) {
		if len(content) == 0 {
			w.progress.fail(errors.New("converse: Send needs content"))
			return
		}
		w.instruct()
		if w.answerPending("the conversation continued without it", false); w.progress.ended() {
			return // the message must not enter after a call without a result
		}
		user := canister.User{Content: slices.Clone(content)}
		user.Time = w.opts.Now()
		w.introduceBefore()
		w.append(user)
		w.work()
	})
}

// Ask is Send for callers that need only the outcome of the turn. A turn that a limit
// ended is not an error; see [Turn.Reason].
func (c *Conversation) Ask(ctx context.Context, content ...canister.Content) (Turn, error) {
	return last(ctx, c.Send(ctx, content...))
}

// Continue runs the turn to its end from wherever the history stands: it runs
// invocations that lack a result and asks the model. It can take up a history after any
// step, and yields only a [TurnCompleted] when there is nothing to do.
//
// With Options.Log the history records whether the call of an invocation without a
// result was begun. If it was not, the invocation runs. If it was, it runs for a second
// time if its tool is read-only or idempotent ([ensemble.Tool.Repeatable]), under the
// same [invoker.Call] ID; otherwise see Options.AskDoubt. Without a log Continue runs it,
// maybe for a second time.
func (c *Conversation) Continue(ctx context.Context) iter.Seq2[Event, error] {
	return c.run(ctx, true, (*turn).work)
}

// Run is Continue for callers that need only the outcome, such as an engine that
// carries on the conversations of a log. It can be called again after any crash, in any
// process. It stops when the turn is done, or with [ReasonWaiting] when only the waits
// in Turn.Waits are left.
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

// Step does one step of [Conversation.Continue]: one exchange with the model, one
// invocation, or one summary. Unless it is interrupted, it leaves the rest to the next Step. Only a
// Step that finds nothing to do yields a [TurnCompleted]. Within a turn, tools are
// added between steps as they are between exchanges.
func (c *Conversation) Step(ctx context.Context) iter.Seq2[Event, error] {
	return c.run(ctx, true, func(w *turn) { w.step(1) })
}

// Add appends canisters without asking the model: documents, instructions, or a user's
// message for a later Continue. Missing IDs and times are filled in. Either all
// canisters enter, or none and Add returns an error: canisters that violate the rules
// of [sequence.Check] are refused. Invocations without results may only stand at the
// end, and run with the next Continue. The metadata that mark the document of a
// compaction are removed from added canisters.
func (c *Conversation) Add(ctx context.Context, canisters ...canister.Canister) error {
	return failure(c.run(ctx, false, func(w *turn) { w.instruct(); w.add(canisters) }))
}

// Load adds the canisters that Options.Log has and the history lacks, as each piece of
// work does before it begins. Use it to look at the history first. It writes nothing,
// and does nothing without a log.
func (c *Conversation) Load(ctx context.Context) error {
	return failure(c.run(ctx, false, nil))
}

// failure returns the error of events, which is the last one.
func failure(events iter.Seq2[Event, error]) (err error) {
	for _, err = range events {
	}
	return err
}

// Close cancels the work under way, waits until it has ended, and closes the roster if the
// conversation owns it. Results of calls that the log did not accept are appended now, if that
// succeeds and no other process has carried on the conversation. When ctx ends first, Close
// returns its error. If functions of the program have not returned 10 seconds after the work,
// Close returns an error that names them, even if one of them called Close itself: it must
// return first. Close may be called twice. It must not be called from within the loop over the
// events of the same conversation: leave the loop first.
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

// end cancels the work under way and waits for it.
func (c *Conversation) end(ctx context.Context, working *work) error {
	if working != nil {
		working.cancel(ErrClosed)
		if err := foreign.Wait(ctx, working.done); err != nil {
			return fmt.Errorf("converse: closing: the running work has not ended: %w", err)
		}
	}
	c.storeOwed(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, foreign.Patience, fmt.Errorf("%v have passed", foreign.Patience))
	defer cancel()
	return c.background.Wait(ctx)
}

// storeOwed tries again to append the results that the log did not accept. It does not
// read the log: if another process has carried on the conversation, this is a conflict.
func (c *Conversation) storeOwed(ctx context.Context) {
	c.mu.Lock()
	owed := c.owed
	c.owed = nil
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r := &recorder{conv: c, opts: &c.opts, guard: newGuard(ctx, c, &foreign.Leftovers{})}
	if len(owed) > 0 && r.written(ctx) == nil {
		_ = r.append(ctx, owed) // the work has returned the error
	}
}

// run claims the conversation for one piece of work and releases it afterwards. It
// always loads new canisters from the log, and does nothing else if do is nil. If
// traced, the work is a span.
func (c *Conversation) run(ctx context.Context, traced bool, do func(*turn)) iter.Seq2[Event, error] {
	var ranged atomic.Bool
	return func(yield func(Event, error) bool) {
		if ranged.Swap(true) {
			yield(nil, errors.New("converse: these events can be ranged over only once: call the method again"))
			return
		}
		ctx = telemetry.WithConversation(telemetry.With(ctx, c.opts.Telemetry), c.opts.ID)
		ctx, cancel := context.WithCancelCause(invoker.WithTrusted(ctx, c.opts.Trusted...))
		defer cancel(nil)
		working := &work{cancel: cancel, done: make(chan struct{})}
		working.suspension, working.suspend = context.WithCancel(context.Background())
		if err := c.claim(working); err != nil {
			yield(nil, err)
			return
		}
		defer c.release(working)
		var agent *telemetry.Agent
		if traced {
			ctx, agent = telemetry.StartAgent(ctx, "", c.info)
		}
		t := newTurn(ctx, c, working, yield)
		t.agent = agent
		defer t.endTrace()
		returned := false
		defer func() {
			t.loop.inBody = false
			if !returned {
				t.progress.end(phaseLeft, errPanicked)
			}
			t.finish()
		}()
		t.contain(func() {
			if err := t.recorder.load(t.ctx); err != nil {
				t.progress.fail(err)
			} else if do != nil {
				if t.appendOwed(); !t.progress.ended() {
					do(t)
				}
			}
		})
		returned = true
	}
}

// instruct adds the instructions to an empty history. Only Send and Add begin a
// conversation; for other work, an empty log can mean that it was deleted.
func (t *turn) instruct() {
	if len(t.conv.history) == 0 && t.opts.Instructions != "" {
		t.append(canister.Supervisor{Content: canister.Texts(t.opts.Instructions)})
	}
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
