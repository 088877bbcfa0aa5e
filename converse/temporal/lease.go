// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/converse"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// lease is the right to continue a conversation; it lasts as long as the server
// receives heartbeats. The context that begin returns ends with [converse.ErrSuspended]
// in its cause when the lease is lost, or may be, when this worker must stop, and when
// the user has cancelled, since the log says so by then.
type lease struct {
	beat    func(context.Context) error // sends a heartbeat to the server
	timeout time.Duration               // after this time the server gives the lease away
	stop    <-chan struct{}             // closed when the worker must stop
	grace   time.Duration               // time for running calls to end by themselves

	end    context.CancelCauseFunc
	mu     sync.Mutex
	asking bool // a request to the model is running: no tool call is
	last   bool // the worker must stop: nothing new is begun
}

// begin keeps the lease until the returned function is called, which stops and waits
// for the heartbeats.
func (l *lease) begin(ctx context.Context) (context.Context, func()) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	l.end = end
	unhook := context.AfterFunc(ctx, func() { end(suspended(context.Cause(ctx))) })
	var kept sync.WaitGroup
	kept.Go(func() { l.keep(work) })
	return work, func() {
		unhook()
		end(converse.ErrSuspended)
		kept.Wait()
	}
}

// keep sends heartbeats, several within each timeout.
func (l *lease) keep(work context.Context) {
	ticker := time.NewTicker(l.timeout / 5)
	defer ticker.Stop()
	heard := time.Now()
	stop := l.stop
	var grace <-chan time.Time
	for {
		select {
		case <-work.Done():
			return
		case <-stop:
			stop = nil
			grace = time.After(l.grace)
			l.finish()
			continue
		case <-grace:
			l.end(converse.ErrSuspended)
			return
		case <-ticker.C:
		}
		// The process was stopped for long, or the server is unreachable: another
		// worker may have the lease by now.
		left := l.timeout - time.Since(heard)
		if left <= 0 {
			l.end(converse.ErrSuspended)
			return
		}
		sent := time.Now()
		if l.renew(work, left) == nil {
			heard = sent
		}
	}
}

// renew sends a heartbeat. If the server answers that the work must stop, the work
// ends.
func (l *lease) renew(work context.Context, within time.Duration) error {
	ctx, done := context.WithTimeout(work, within)
	defer done()
	err := l.beat(ctx)
	if err != nil && definite(err) {
		l.end(suspended(err))
	}
	return err
}

// held asks the server whether the lease is still valid.
func (l *lease) held(work context.Context) bool {
	return work.Err() == nil && l.renew(work, l.timeout) == nil
}

// finish prevents new work: an exchange with the model can be repeated without harm and
// is suspended at once, but running tool calls may end first.
func (l *lease) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
	if l.asking {
		l.end(converse.ErrSuspended)
	}
}

// stopping reports whether the worker must stop.
func (l *lease) stopping() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// saw tracks what is under way from the events of the work.
func (l *lease) saw(event converse.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch event.(type) {
	case converse.InvocationRequested:
		l.asking = false
	case converse.MessageStarted:
		l.asking = true
		if l.last {
			l.end(converse.ErrSuspended)
		}
	}
}

// definite reports whether the error of a heartbeat decides the fate of the lease,
// rather than that the server was not reached.
func definite(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	_, away := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return gone || away || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// suspended returns ErrSuspended with a reason.
func suspended(why error) error { return fmt.Errorf("%w: %w", converse.ErrSuspended, why) }
