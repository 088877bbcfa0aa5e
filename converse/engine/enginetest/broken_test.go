// SPDX-License-Identifier: Apache-2.0

package enginetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/engine/enginetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/testing/suite"
)

// brokenEngine is a Local with one rule broken: a function that is there takes the
// place of a method.
type brokenEngine struct {
	*engine.Local
	store  history.Store
	before history.Store // as Local sees it, if not as it is
	send   func(ctx context.Context, conversation string, message canister.User) error
	answer func(ctx context.Context, conversation string, answer canister.Answer) error
	cancel func(ctx context.Context, conversation string) error
	watch  func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error]
	closes func(ctx context.Context) error
	opts   engine.Options
}

func (b *brokenEngine) Send(ctx context.Context, conversation string, message canister.User) error {
	if b.send == nil {
		return b.Local.Send(ctx, conversation, message)
	}
	return b.send(ctx, conversation, message)
}

func (b *brokenEngine) Answer(ctx context.Context, conversation string, answer canister.Answer) error {
	if b.answer == nil {
		return b.Local.Answer(ctx, conversation, answer)
	}
	return b.answer(ctx, conversation, answer)
}

func (b *brokenEngine) Cancel(ctx context.Context, conversation string) error {
	if b.cancel == nil {
		return b.Local.Cancel(ctx, conversation)
	}
	return b.cancel(ctx, conversation)
}

func (b *brokenEngine) Watch(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
	if b.watch == nil {
		return b.Local.Watch(ctx, conversation, after)
	}
	return b.watch(ctx, conversation, after)
}

func (b *brokenEngine) Close(ctx context.Context) error {
	if b.closes == nil {
		return b.Local.Close(ctx)
	}
	return b.closes(ctx)
}

// later sends only when a watcher starts, and has returned long before.
func (b *brokenEngine) later() {
	unsent := make(chan func(), 100)
	b.send = func(_ context.Context, conversation string, message canister.User) error {
		unsent <- func() { _ = b.Local.Send(context.Background(), conversation, message) }
		return nil
	}
	b.watch = func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
		for len(unsent) > 0 {
			(<-unsent)()
		}
		return b.Local.Watch(ctx, conversation, after)
	}
}

// sending passes each message through change.
func sending(change func(canister.User) canister.User) func(*brokenEngine) {
	return func(b *brokenEngine) {
		b.send = func(ctx context.Context, conversation string, message canister.User) error {
			return b.Local.Send(ctx, conversation, change(message))
		}
	}
}

// unordered lets the second message in before the first.
func (b *brokenEngine) unordered() func(context.Context, string, canister.User) error {
	second := make(chan struct{})
	return func(ctx context.Context, conversation string, message canister.User) error {
		switch message.ID {
		case "m1":
			select {
			case <-second:
			case <-ctx.Done():
			}
		case "m2":
			defer close(second)
		}
		return b.Local.Send(ctx, conversation, message)
	}
}

// impatient tries again, whenever anything happens, until a conversation that waits
// takes the message.
func (b *brokenEngine) impatient(ctx context.Context, conversation string, message canister.User) error {
	err := b.Local.Send(ctx, conversation, message)
	if !errors.Is(err, engine.ErrWaiting) {
		return err
	}
	for range b.Local.Watch(ctx, conversation, 0) {
		if err = b.Local.Send(ctx, conversation, message); !errors.Is(err, engine.ErrWaiting) {
			break
		}
	}
	return err
}

// unwoken writes answers down, and that is all. A turn that is about to end would still find
// the first one: Send waits until it has ended, and enters nothing. So would the search of the
// engine that starts, which can be late on a busy machine: it sees no conversation.
func (b *brokenEngine) unwoken() func(ctx context.Context, conversation string, answer canister.Answer) error {
	b.before = blind{b.store}
	var first sync.Once
	return func(ctx context.Context, conversation string, answer canister.Answer) error {
		first.Do(func() { _ = b.Local.Send(ctx, conversation, canister.User{Head: canister.Head{ID: "early"}}) })
		return waits.Answer(ctx, b.store, conversation, answer, time.Now())
	}
}

// watching passes each event through change, which may drop it.
func watching(change func(engine.Event) (engine.Event, bool)) func(*brokenEngine) {
	return func(b *brokenEngine) {
		b.watch = func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
			return func(yield func(engine.Event, error) bool) {
				for event, err := range b.Local.Watch(ctx, conversation, after) {
					keep := err != nil
					if err == nil {
						event, keep = change(event)
					}
					if keep && !yield(event, err) {
						return
					}
				}
			}
		}
	}
}

// deltas passes each delta through change.
func deltas(change func(*engine.Delta) bool) func(*brokenEngine) {
	return watching(func(event engine.Event) (engine.Event, bool) {
		delta, ok := event.(engine.Delta)
		if !ok {
			return event, true
		}
		keep := change(&delta)
		return delta, keep
	})
}

// blind is a store that has nothing open.
type blind struct{ history.Store }

func (blind) List(context.Context, history.Filter) iter.Seq2[history.Info, error] {
	return func(func(history.Info, error) bool) {}
}

// forgetting ignores conversations left by a previous process.
func forgetting(b *brokenEngine) { b.before = blind{b.store} }

// unintended records another intent than the next action.
type unintended struct{ history.Store }

func (u unintended) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	canisters = slices.Clone(canisters)
	for i, c := range canisters {
		if intent, ok := c.(canister.Intent); ok {
			canisters[i] = canister.Wait{Head: intent.Head, For: canister.WaitTimer, Deadline: intent.Time}
		}
	}
	return u.Store.Append(ctx, conversation, length, canisters...)
}

var engineBreaks = map[string]func(*brokenEngine){
	"Send/answered": func(b *brokenEngine) {
		b.send = func(ctx context.Context, conversation string, message canister.User) error {
			return engine.Post(ctx, b.store, nil, conversation, message, time.Now())
		}
	},
	"Send/log-first":        (*brokenEngine).later,
	"Send/log-first forget": forgetting,
	"Send/again":            sending(func(m canister.User) canister.User { m.ID = ""; return m }),
	"Send/queued":           func(b *brokenEngine) { b.send = b.unordered() },
	"Send/queued deaf": func(b *brokenEngine) {
		b.send = func(_ context.Context, conversation string, message canister.User) error {
			return b.Local.Send(context.Background(), conversation, message)
		}
	},
	"Send/waiting":      func(b *brokenEngine) { b.send = b.impatient },
	"Send/bad":          sending(func(m canister.User) canister.User { m.Content = append(m.Content, canister.Text("")); return m }),
	"Send/side-by-side": func(b *brokenEngine) { b.opts.Work = 3 },
	"Fail/retried":      func(b *brokenEngine) { b.opts.Retries = -1 },
	"Fail/ends": watching(func(event engine.Event) (engine.Event, bool) {
		ended, ok := event.(engine.Ended)
		return event, !ok || ended.Error == ""
	}),
	"Fail/calls": func(b *brokenEngine) {
		b.send = func(ctx context.Context, conversation string, message canister.User) error {
			err := b.Local.Send(ctx, conversation, message)
			if errors.Is(err, engine.ErrBusy) {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return err
		}
	},
	"Fail/panic": watching(func(event engine.Event) (engine.Event, bool) {
		if ended, ok := event.(engine.Ended); ok {
			ended.Error = ""
			return ended, true
		}
		return event, true
	}),
	"Answer/allow": func(b *brokenEngine) { b.answer = b.unwoken() },
	"Answer/allow twice": func(b *brokenEngine) {
		b.answer = func(ctx context.Context, conversation string, answer canister.Answer) error {
			answer.ID = ""
			return b.Local.Answer(ctx, conversation, answer)
		}
	},
	"Answer/deny": func(b *brokenEngine) {
		b.answer = func(ctx context.Context, conversation string, answer canister.Answer) error {
			answer.Verdict = canister.VerdictAllow
			return b.Local.Answer(ctx, conversation, answer)
		}
	},
	"Answer/nobody": func(b *brokenEngine) {
		b.answer = func(ctx context.Context, conversation string, answer canister.Answer) error {
			_ = b.Local.Answer(ctx, conversation, answer)
			return nil
		}
	},
	"Answer/beside": func(b *brokenEngine) {
		b.answer = func(ctx context.Context, conversation string, answer canister.Answer) error {
			_ = b.Local.Cancel(ctx, conversation)
			return b.Local.Answer(ctx, conversation, answer)
		}
	},
	"Answer/restart":   forgetting,
	"Deadline/passes":  deaf,
	"Deadline/restart": forgetting,
	"Cancel/exchange": func(b *brokenEngine) {
		b.cancel = func(context.Context, string) error { return nil }
	},
	"Cancel/call": func(b *brokenEngine) {
		b.cancel = func(ctx context.Context, _ string) error { return ctx.Err() }
	},
	"Cancel/waiting": func(b *brokenEngine) {
		b.cancel = func(ctx context.Context, _ string) error { return ctx.Err() }
	},
	"Cancel/nothing": func(b *brokenEngine) {
		b.cancel = func(ctx context.Context, conversation string) error {
			return b.Local.Send(ctx, conversation, canister.User{Content: canister.Texts("say stop")})
		}
	},
	"Watch/order": watching(func(event engine.Event) (engine.Event, bool) {
		added, ok := event.(engine.Added)
		return event, !ok || added.Position != 4
	}),
	"Watch/order after": func(b *brokenEngine) {
		b.watch = func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
			return b.Local.Watch(ctx, conversation, max(after-1, 0))
		}
	},
	"Watch/before": func(b *brokenEngine) {
		b.watch = func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
			if _, err := b.store.Info(ctx, conversation); err != nil {
				return func(func(engine.Event, error) bool) {}
			}
			return b.Local.Watch(ctx, conversation, after)
		}
	},
	"Watch/late": watching(func(event engine.Event) (engine.Event, bool) {
		ended, ok := event.(engine.Ended)
		return event, !ok || ended.Reason != converse.ReasonWaiting || len(ended.Waits) == 0
	}),
	"Watch/deltas":       deltas(func(d *engine.Delta) bool { return d.Index != 1 }),
	"Watch/deltas index": deltas(func(d *engine.Delta) bool { d.Index = 7; return true }),
	"Watch/attempts":     deltas(func(d *engine.Delta) bool { d.Attempt = 1; return true }),
	"Watch/deleted":      unending,
	"Watch/superseded": watching(func(event engine.Event) (engine.Event, bool) {
		ended, ok := event.(engine.Ended)
		return event, !ok || ended.Superseded == ""
	}),
	"Watch/ends":          heedlessWatch,
	"Close/finishes":      func(b *brokenEngine) { b.closes = b.closeAtOnce },
	"Close/finishes open": func(b *brokenEngine) { b.closes = func(context.Context) error { return nil } },
	"Close/suspends":      func(b *brokenEngine) { b.closes = b.cancelAll },
	"Crash/exchange":      forgetting,
	"Crash/call":          func(b *brokenEngine) { b.before = unintended{b.store} },
	"Crash/call forget":   forgetting,
	"Crash/many":          func(b *brokenEngine) { b.before = unintended{b.store} },
	"Two/split":           func(b *brokenEngine) { b.opts.Work = 1; b.send = b.toOne() },
	"Two/one":             sending(func(m canister.User) canister.User { m.ID = ""; return m }),
}

// deaf does not hear deadlines: they are further away than they were.
func deaf(b *brokenEngine) { b.before = stretched{b.store} }

// stretched is a store whose waits have more time.
type stretched struct{ history.Store }

func (s stretched) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for c, err := range s.Store.Read(ctx, conversation, after) {
			if wait, ok := c.(canister.Wait); ok {
				wait.Deadline = wait.Deadline.Add(time.Hour)
				c = wait
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func (s stretched) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	canisters = slices.Clone(canisters)
	for i, c := range canisters {
		if wait, ok := c.(canister.Wait); ok {
			wait.Deadline = wait.Deadline.Add(time.Hour)
			canisters[i] = wait
		}
	}
	return s.Store.Append(ctx, conversation, length, canisters...)
}

// heedlessWatch goes on when its context has ended.
func heedlessWatch(b *brokenEngine) {
	b.watch = func(_ context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
		return b.Local.Watch(context.Background(), conversation, after)
	}
}

// unending hides why a Watch ended.
func unending(b *brokenEngine) {
	b.watch = func(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
		return func(yield func(engine.Event, error) bool) {
			for event, err := range b.Local.Watch(ctx, conversation, after) {
				if errors.Is(err, history.ErrNotFound) {
					<-ctx.Done()
					err = ctx.Err()
				}
				if !yield(event, err) {
					return
				}
			}
		}
	}
}

// closeAtOnce waits for nothing.
func (b *brokenEngine) closeAtOnce(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.Local.Close(ctx)
	return errors.Join(err, errors.New("closed already"))
}

// cancelAll cancels, where it is to put down.
func (b *brokenEngine) cancelAll(ctx context.Context) error {
	for info, err := range b.store.List(context.Background(), history.Filter{Open: true}) {
		if err == nil {
			_ = b.Local.Cancel(context.Background(), info.ID)
		}
	}
	return b.Local.Close(ctx)
}

// toOne lets only one conversation run, permanently.
func (b *brokenEngine) toOne() func(context.Context, string, canister.User) error {
	var first sync.Once
	return func(ctx context.Context, conversation string, message canister.User) error {
		first.Do(func() {
			_ = b.Local.Send(ctx, "beside", canister.User{Content: canister.Texts("hold for ever")})
		})
		return b.Local.Send(ctx, conversation, message)
	}
}

// TestBrokenEngine runs the suite over an engine that breaks one rule; only for
// TestEngineSuiteFinds, which runs it in a process of its own.
func TestBrokenEngine(t *testing.T) {
	name := suite.BrokenRule(t, "ENGINETEST_BREAK")
	enginetest.TestEngine(t, func(*testing.T) enginetest.Harness { return localHarness(engineBreaks[name]) })
}

// localHarness is a Local over a store in memory, broken or not.
func localHarness(break_ func(*brokenEngine)) enginetest.Harness {
	store := history.NewMemory()
	start := func(open func(history.Log) converse.OpenFunc) (enginetest.Process, error) {
		mortal := enginetest.NewMortal(store)
		b := &brokenEngine{store: mortal, before: mortal, opts: engine.Options{Backoff: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}
		if break_ != nil {
			break_(b)
		}
		var err error
		b.Local, err = engine.NewLocal(b.before, open(b.before), &b.opts)
		return enginetest.Process{Engine: b, Kill: func() {
			mortal.Kill()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = b.Local.Close(ctx)
		}}, err
	}
	return enginetest.Harness{Store: store, Start: start, Patience: 3 * time.Second}
}

// TestEngineSuiteFinds checks that each case of the suite can fail.
func TestEngineSuiteFinds(t *testing.T) {
	suite.Finds(t, "TestBrokenEngine", "ENGINETEST_BREAK", engineBreaks)
}

// The harness finds nothing wrong with an engine that is whole.
func TestLocalIsWhole(t *testing.T) {
	enginetest.TestEngine(t, func(*testing.T) enginetest.Harness {
		whole := localHarness(nil)
		whole.Patience = 0 // the default
		return whole
	})
}
