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

// Ensemble is a group of invokers that share a name scope and one life: what a
// [Source] offers, kept connected. All methods may be called concurrently. [New]
// makes one; the zero value is not usable.
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
	// current is the connection that is in use or being made; nil while idle,
	// lost or closed.
	current *life
	// last is the newest connection that was opened, gone or not; nil before
	// the first. The next one is not opened until it is gone.
	last *life
	// attempts remembers the attempts that failed since one succeeded.
	attempts backoff

	setbacks []time.Time    // losses and failed attempts within Restart.Window
	retry    *time.Timer    // connects again; nil when that is not planned
	random   func() float64 // from 0 to 1, for the wait before it
	parked   error          // says why, while the state is Parked
	broken   bool           // the connection was lost, and none is open since

	offer           *offer // of the last listing, kept from connection to connection
	listed          bool   // there was one
	asleep          bool   // idle for want of use: the offer stands
	lastChange      Change
	peer            Peer
	lastErr         error
	connectDuration time.Duration
	tally           tally

	// jobs are the calls and listings that have not returned, and abandoned
	// counts by name those of them that nobody waits for any more.
	jobs      map[*job]struct{}
	abandoned map[string]int

	subscriptions map[string]*subscription // by URI

	unobserve func() // takes it out of the gauges
}

// New makes an ensemble from a source. The name is the scope of its tools'
// names; any text but the empty one, which [NewRoster] refuses. Nothing is
// connected until the ensemble is used; one whose source is nil cannot connect.
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

// Connect connects now, unless the ensemble is ready; other uses connect by
// themselves. Callers at the same time share one attempt, which is bounded by
// Options.ConnectTimeout and by nothing else: each caller waits only as long
// as its own ctx lasts, and the attempt goes on for the others, or for the
// next one, when a caller leaves.
//
// After an attempt has failed, other uses of the ensemble report that failure
// for a while, 1 s at first and 30 s at last, in place of trying again.
// Connect always tries, and revives an ensemble that is Parked.
func (e *Ensemble) Connect(ctx context.Context) error {
	_, err := e.ready(ctx, true)
	return err
}

// Tools returns the tools on offer, sorted by the name that the model knows
// them by. It connects if need be. The list is the one that the connection
// gave when it was made, or later when it said that its tools had changed; if
// asking anew fails, the old list stands and is asked for again after a while.
// An ensemble that was disconnected for want of use is not woken for it: its
// last list stands.
func (e *Ensemble) Tools(ctx context.Context) ([]*Tool, error) {
	offer, err := e.offered(ctx)
	if err != nil {
		return nil, err
	}
	return append([]*Tool(nil), offer.tools...), nil
}

// Disconnect ends the connection, and any attempt to make one: calls in flight
// fail, and everything that was started for it is gone when Disconnect
// returns nil. The next use connects again. When ctx ends, or
// Options.CloseTimeout has passed, the connection is ended impolitely; what
// does not go away then, such as a function that ignores its context, is
// named in the error.
func (e *Ensemble) Disconnect(ctx context.Context) error {
	return e.leave(ctx, Idle, ErrDisconnected)
}

// Close does what [Ensemble.Disconnect] does and is final: later uses fail
// with [ErrClosed]. It may be called again, and then waits for what is left.
func (e *Ensemble) Close(ctx context.Context) error {
	e.unobserve()
	return e.leave(ctx, Closed, ErrClosed)
}

// impoliteness is how long an end that is no longer polite is waited for.
const impoliteness = 2 * time.Second

// leave ends the current connection, enters state and waits until everything
// is gone.
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

// waitGone waits for connections and the jobs on them, and a little longer than
// ctx lasts, because what ends impolitely takes a moment too.
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

// enter notes the state; e.mu is held.
func (e *Ensemble) enter(state State) {
	if e.state == state {
		return
	}
	e.state, e.since = state, time.Now()
	e.log.Debug("the state changed", event.StateChanged, zap.String("state", string(state)))
}
