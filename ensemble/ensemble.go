// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
)

// Ensemble is a group of invokers that share a name scope and a lifetime: the offer of
// a [Source], kept connected. All methods may be called concurrently. [New] makes an
// ensemble; the zero value is not usable.
type Ensemble struct {
	// These do not change after New.
	name    string
	source  Source
	options Options
	log     *zap.Logger
	foreign foreignCode

	// These have locks of their own, which may be taken while mu is held, but not the
	// other way round.
	stats stats
	news  *broadcaster

	// mu guards everything below, and those fields of sessions, jobs, subscriptions and
	// listCaches that say so.
	mu            sync.Mutex
	supervisor    supervisor
	retirement    retirement
	tools         toolHistory
	jobs          jobs
	lists         libraryLists
	subscriptions map[string]*subscription // by URI

	unobserve func() // unregisters the ensemble from the gauges
}

// New makes an ensemble from a source. The name is the scope of its tools' names; any
// text is valid except the empty one, which [NewRoster] refuses. Nothing is connected
// until the ensemble is used. An ensemble with a nil source cannot connect.
func New(name string, source Source, options *Options) *Ensemble {
	e := &Ensemble{
		name:    name,
		source:  source,
		options: options.withDefaults(),
		news:    &broadcaster{ensemble: name, watchers: make(map[*watcher]struct{}), wanted: make(map[string]struct{})},
		tools:   toolHistory{offer: &offer{}},
		jobs:    jobs{running: make(map[*job]struct{}), abandoned: make(map[string]int)},

		subscriptions: make(map[string]*subscription),
		unobserve:     func() {},
	}
	e.options.Trust = cmp.Or(e.options.Trust, trust(source))
	e.log = e.options.Logger.With(zap.String("ensemble", name))
	e.foreign = foreignCode{e.log}
	e.options.Redact = redact.Contained(e.options.Redact, e.foreign.logPanic)
	e.lists = newLibraryLists(e)
	e.supervisor = supervisor{ensemble: e, state: Idle, since: time.Now(), random: rand.Float64}
	e.observe()
	return e
}

// Name returns the name given to [New].
func (e *Ensemble) Name() string { return e.name }

// Connect connects now, unless the ensemble is ready. Other uses connect by themselves.
// Concurrent callers share one attempt. Options.ConnectTimeout bounds it once the source
// is asked to open. Each caller waits only as long as its own ctx lasts, and the attempt
// continues for the other callers, or for the next one, when a caller leaves.
//
// After an attempt has failed, other uses of the ensemble report that failure for a
// while, 1 s at first and 30 s at most, instead of trying again. Connect always tries,
// and revives an ensemble that is Parked.
func (e *Ensemble) Connect(ctx context.Context) error {
	_, err := e.ready(ctx, true, forList)
	return err
}

// Tools returns the tools on offer, sorted by their names for the model. It connects if
// needed. The list comes from the start of the connection, or from the last time the
// connection said that its tools had changed; if listing again fails, the old list
// stays valid and listing is retried after a while. Tools does not reconnect an
// ensemble that was disconnected because it was idle: its last list stays valid.
func (e *Ensemble) Tools(ctx context.Context) ([]*Tool, error) {
	offer, err := e.offered(ctx)
	if err != nil {
		return nil, err
	}
	return append([]*Tool(nil), offer.tools...), nil
}

// Disconnect ends the connection and any attempt to connect: calls in flight fail, and
// everything that was started for the connection is gone when Disconnect returns nil.
// The next use connects again, unless the ensemble is [Parked], which it stays. When ctx
// ends, or Options.CloseTimeout has passed, the end is forced; the error names anything that
// still does not go away, such as a function that ignores its context.
func (e *Ensemble) Disconnect(ctx context.Context) error {
	return e.leave(ctx, Idle, errDisconnected)
}

// Park does the same as [Ensemble.Disconnect], and then no use connects again until
// [Ensemble.Connect] is called: the state is [Parked], and uses fail at once with the reason,
// a text such as "parked by ada".
func (e *Ensemble) Park(ctx context.Context, reason string) error {
	return e.leave(ctx, Parked, fmt.Errorf("ensemble %q: %s (%w, %w; Ensemble.Connect revives it)", e.name, reason, errDisconnected, errParked))
}

// Close does the same as [Ensemble.Disconnect] and is final: later uses fail with
// [ErrClosed]. Close may be called again, and then waits for what remains.
func (e *Ensemble) Close(ctx context.Context) error {
	e.unobserve()
	return e.leave(ctx, Closed, ErrClosed)
}

// forcedEnd bounds the wait for a forced end.
const forcedEnd = 2 * time.Second

// leave ends the current connection, enters state and waits until everything is gone.
func (e *Ensemble) leave(ctx context.Context, state State, cause error) error {
	e.mu.Lock()
	sessions := e.supervisor.leave(state, cause)
	jobs := e.jobs.ofEnded()
	e.mu.Unlock()
	if len(sessions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.CloseTimeout)
	defer cancel()
	for _, s := range sessions {
		defer context.AfterFunc(ctx, s.forceClose)()
	}
	return e.waitGone(ctx, sessions, jobs)
}

// waitGone waits for connections and the jobs on them, and a little longer than ctx
// lasts, because a forced end takes a moment too.
func (e *Ensemble) waitGone(ctx context.Context, sessions []*session, jobs []*job) error {
	bound := time.NewTimer(e.options.CloseTimeout + forcedEnd)
	defer bound.Stop()
	defer context.AfterFunc(ctx, func() { bound.Reset(forcedEnd) })()

	var left []error
	late := false
	wait := func(gone <-chan struct{}, what string) {
		if !late {
			select {
			case <-gone:
				return
			case <-bound.C:
				late = true
			}
		}
		select {
		case <-gone:
		default:
			left = append(left, fmt.Errorf("ensemble %q: %s", e.name, what))
		}
	}
	for _, s := range sessions {
		wait(s.gone, "its connection did not close in time")
	}
	for _, j := range jobs {
		wait(j.done, j.name+" was cancelled and is still running")
	}
	return errors.Join(left...)
}
