// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
)

// Ensemble is a group of invokers that share a name scope and a lifetime: the offer of
// a [Source], kept connected. All methods may be called concurrently. [New] makes an
// ensemble; the zero value is not usable.
type Ensemble struct {
	name    string
	source  Source
	options Options
	filter  filter
	log     *zap.Logger
	shelves shelves
	news    *newsroom

	mu    sync.Mutex
	state State
	since time.Time
	// current is the connection in use or being opened; nil while idle, lost or closed.
	current *life
	// last is the newest connection that was opened, gone or not; nil before the first.
	// The next one is not opened until it is gone.
	last *life
	// attempts remembers the failed attempts since the last successful one.
	attempts backoff

	setbacks []time.Time    // losses and failed attempts within Restart.Window
	retry    *time.Timer    // connects again; nil when no attempt is planned
	random   func() float64 // from 0 to 1, for the wait before a retry
	parked   error          // the reason, while the state is Parked
	broken   bool           // the connection was lost, and none has opened since

	offer           *offer // from the last listing; kept across connections
	listed          bool   // offer comes from a listing
	asleep          bool   // disconnected because it was idle: the offer stays valid
	lastChange      Change
	peer            Peer
	lastErr         error
	connectDuration time.Duration
	tally           tally

	// jobs are the calls and listings that have not returned. abandoned counts, by
	// name, the jobs that no caller waits for.
	jobs      map[*job]struct{}
	abandoned map[string]int

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
		state:   Idle,
		since:   time.Now(),
		random:  rand.Float64,
		offer:   &offer{},
		jobs:    make(map[*job]struct{}),

		abandoned: make(map[string]int),
		shelves:   newShelves(name),
		news:      newNewsroom(name),

		subscriptions: make(map[string]*subscription),
		unobserve:     func() {},
	}
	e.options.Trust = cmp.Or(e.options.Trust, trust(source))
	e.filter = filter{allow: e.options.Allow, deny: e.options.Deny}
	e.log = e.options.Logger.With(zap.String("ensemble", name))
	e.options.Redact = redact.Contained(e.options.Redact, e.logPanic)
	e.observe()
	return e
}

// Name returns the name given to [New].
func (e *Ensemble) Name() string { return e.name }

// Connect connects now, unless the ensemble is ready. Other uses connect by themselves.
// Concurrent callers share one attempt, which is bounded only by
// Options.ConnectTimeout: each caller waits only as long as its own ctx lasts, and the
// attempt continues for the other callers, or for the next one, when a caller leaves.
//
// After an attempt has failed, other uses of the ensemble report that failure for a
// while, 1 s at first and 30 s at most, instead of trying again. Connect always tries,
// and revives an ensemble that is Parked.
func (e *Ensemble) Connect(ctx context.Context) error {
	_, err := e.ready(ctx, true)
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
// The next use connects again. When ctx ends, or Options.CloseTimeout has passed, the
// end is forced; the error names anything that still does not go away, such as a
// function that ignores its context.
func (e *Ensemble) Disconnect(ctx context.Context) error {
	return e.leave(ctx, Idle, ErrDisconnected)
}

// Close does the same as [Ensemble.Disconnect] and is final: later uses fail with
// [ErrClosed]. Close may be called again, and then waits for what remains.
func (e *Ensemble) Close(ctx context.Context) error {
	e.unobserve()
	return e.leave(ctx, Closed, ErrClosed)
}

// impoliteness bounds the wait for a forced end.
const impoliteness = 2 * time.Second

// leave ends the current connection, enters state and waits until everything is gone.
func (e *Ensemble) leave(ctx context.Context, state State, cause error) error {
	e.mu.Lock()
	var lives []*life
	if e.current != nil {
		lives = append(lives, e.current)
		e.end(e.current, cause)
	}
	if e.last != nil {
		lives = append(lives, e.last) // may be the same
	}
	if e.state != Closed {
		e.enter(state)
		e.forgive()
		e.asleep = false
	}
	jobs := e.endedJobs()
	e.mu.Unlock()
	if len(lives) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.CloseTimeout)
	defer cancel()
	for _, l := range lives {
		defer context.AfterFunc(ctx, l.hurry)()
	}
	return e.waitGone(ctx, lives, jobs)
}

// waitGone waits for connections and the jobs on them, and a little longer than ctx
// lasts, because a forced end takes a moment too.
func (e *Ensemble) waitGone(ctx context.Context, lives []*life, jobs []*job) error {
	patience := time.NewTimer(e.options.CloseTimeout + impoliteness)
	defer patience.Stop()
	defer context.AfterFunc(ctx, func() { patience.Reset(impoliteness) })()

	var left []error
	late := false
	wait := func(gone <-chan struct{}, what string) {
		if !late {
			select {
			case <-gone:
				return
			case <-patience.C:
				late = true
			}
		}
		select {
		case <-gone:
		default:
			left = append(left, fmt.Errorf("ensemble %q: %s", e.name, what))
		}
	}
	for _, l := range slices.Compact(lives) {
		wait(l.gone, "its connection did not end in time")
	}
	for _, j := range jobs {
		wait(j.done, j.name+" ignores that it was cancelled and still runs")
	}
	return errors.Join(left...)
}

// enter sets the state; e.mu is held.
func (e *Ensemble) enter(state State) {
	if e.state == state {
		return
	}
	e.state, e.since = state, time.Now()
	e.log.Debug("the state changed", event.StateChanged, zap.String("state", string(state)))
}
