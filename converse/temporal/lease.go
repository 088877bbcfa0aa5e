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

// lease is the right to carry on a conversation for as long as the server hears
// from it. The context that begin returns ends with [converse.ErrSuspended] in
// its cause when the lease is lost, or may be, or this worker is to stop; and also
// when the person has cancelled, since the log says so by then.
type lease struct {
	beat    func(context.Context) error // tells the server
	timeout time.Duration               // after which the server gives the lease away
	stop    <-chan struct{}             // the worker is to stop
	grace   time.Duration               // what calls get then to end by themselves

	end    context.CancelCauseFunc
	mu     sync.Mutex
	asking bool // the model is asked: no call of a tool is under way
	last   bool // the worker is to stop: nothing more is begun
}

// begin keeps the lease until the returned function is called, which waits for
// what was started.
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

// keep tells the server, several times within the timeout, that the work goes on.
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
		// A process that was stopped for long, or a server that is away: the lease
		// may be somebody else's by now.
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

// renew tells the server that the work goes on. When the server says that it is
// not to, the work ends.
func (l *lease) renew(work context.Context, within time.Duration) error {
	ctx, done := context.WithTimeout(work, within)
	defer done()
	err := l.beat(ctx)
	if err != nil && definite(err) {
		l.end(suspended(err))
	}
	return err
}

// held asks the server whether the lease still holds.
func (l *lease) held(work context.Context) bool {
	return work.Err() == nil && l.renew(work, l.timeout) == nil
}

// finish lets nothing more begin: an exchange with the model repeats without
// harm and is put down at once, but calls of tools are let end first.
func (l *lease) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
	if l.asking {
		l.end(converse.ErrSuspended)
	}
}

// stopping reports whether the worker is to stop.
func (l *lease) stopping() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// saw follows the events of the work, to know what is under way.
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

// definite reports whether an error of a heartbeat says what became of the lease,
// rather than that the server was not reached.
func definite(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	_, away := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return gone || away || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// suspended is ErrSuspended for a reason.
func suspended(why error) error { return fmt.Errorf("%w: %w", converse.ErrSuspended, why) }
