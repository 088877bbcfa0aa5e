// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// endOf runs a lease in a bubble of time until its work has to end, and returns
// when that was and why. Within is how long the test waits for it.
func endOf(t *testing.T, within time.Duration, l *lease, during func(stop chan struct{})) (after time.Duration, cause error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		if l.beat == nil {
			l.beat = func(context.Context) error { return nil }
		}
		l.timeout = 10 * time.Second
		stop := make(chan struct{})
		l.stop = stop
		begun := time.Now()
		work, end := l.begin(ctx)
		defer end()
		if during != nil {
			during(stop)
		}
		select {
		case <-work.Done():
			after, cause = time.Since(begun), context.Cause(work)
		case <-time.After(within):
			after = within
		}
	})
	return after, cause
}

func TestALeaseLastsWhileTheServerHears(t *testing.T) {
	beats := 0
	_, cause := endOf(t, time.Hour, &lease{beat: func(context.Context) error { beats++; return nil }}, nil)
	if cause != nil {
		t.Errorf("the work ended with %v", cause)
	}
	if beats < 1700 || beats > 1801 {
		t.Errorf("%d heartbeats in an hour, want one each 2 s", beats)
	}
}

// A server that is away for a moment ends nothing; one that is away for as long as
// the lease lasts may have given it to another worker.
func TestAServerThatIsAway(t *testing.T) {
	for _, away := range []time.Duration{7 * time.Second, 12 * time.Second} {
		var begun time.Time
		beat := func(context.Context) error {
			if since := time.Since(begun); since > 20*time.Second && since < 20*time.Second+away {
				return serviceerror.NewUnavailable("away")
			}
			return nil
		}
		after, cause := endOf(t, time.Minute, &lease{beat: beat}, func(chan struct{}) { begun = time.Now() })
		if ended := cause != nil; ended != (away > 10*time.Second) {
			t.Errorf("away for %v: the work ended after %v with %v", away, after, cause)
		}
		if cause != nil && (!errors.Is(cause, converse.ErrSuspended) || after != 30*time.Second) {
			t.Errorf("away for %v: the work ended after %v with %v, want that it is suspended after 30s", away, after, cause)
		}
	}
}

// A heartbeat that hangs is as good as none.
func TestAHeartbeatThatHangs(t *testing.T) {
	after, cause := endOf(t, time.Minute, &lease{beat: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, nil)
	if !errors.Is(cause, converse.ErrSuspended) || after != 10*time.Second && after != 12*time.Second {
		t.Errorf("the work ended after %v with %v, want that it is suspended when the lease is over", after, cause)
	}
}

func TestWhatAServerSaysOfALease(t *testing.T) {
	for name, said := range map[string]error{
		"it is another's":           serviceerror.NewNotFound("no such activity"),
		"the person has cancelled":  temporal.NewCanceledError(),
		"an operator has paused it": activity.ErrActivityPaused,
		"an operator has reset it":  activity.ErrActivityReset,
	} {
		after, cause := endOf(t, time.Minute, &lease{beat: func(context.Context) error { return said }}, nil)
		if !errors.Is(cause, converse.ErrSuspended) || !errors.Is(cause, said) || after != 2*time.Second {
			t.Errorf("%s: the work ended after %v with %v, want that it is suspended at the first heartbeat", name, after, cause)
		}
	}
}

// The SDK ends the context of an activity too, for example when it has run for
// too long.
func TestTheActivityEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l := &lease{timeout: 10 * time.Second, beat: func(context.Context) error { return nil }}
		work, end := l.begin(ctx)
		defer end()
		<-work.Done()
		if cause := context.Cause(work); !errors.Is(cause, converse.ErrSuspended) {
			t.Errorf("the work ended with %v, want that it is suspended", cause)
		}
	})
}

// A worker that stops ends an exchange immediately, lets calls finish, and does not wait
// for them indefinitely.
func TestAWorkerThatStops(t *testing.T) {
	asking := converse.MessageStarted{}
	calling := converse.InvocationRequested{Invocation: canister.Invocation{}}
	tests := []struct {
		name   string
		before []converse.Event
		after  map[time.Duration]converse.Event // the stop
		want   time.Duration                    // after the stop
	}{
		{"while the model is asked", []converse.Event{asking}, nil, 0},
		{"while a tool is called", []converse.Event{asking, calling}, map[time.Duration]converse.Event{3 * time.Second: asking}, 3 * time.Second},
		{"while a tool is called that hangs", []converse.Event{asking, calling}, nil, 30 * time.Second},
		{"at the beginning, when calls may be taken up", nil, map[time.Duration]converse.Event{time.Second: asking}, time.Second},
	}
	for _, tt := range tests {
		l := &lease{grace: 30 * time.Second}
		after, cause := endOf(t, time.Hour, l, func(stop chan struct{}) {
			for _, e := range tt.before {
				l.saw(e)
			}
			time.AfterFunc(5*time.Second, func() { close(stop) })
			for when, e := range tt.after {
				time.AfterFunc(5*time.Second+when, func() { l.saw(e) })
			}
		})
		if !errors.Is(cause, converse.ErrSuspended) || after != 5*time.Second+tt.want || !l.stopping() {
			t.Errorf("%s: the work ended %v after the stop with %v, want %v", tt.name, after-5*time.Second, cause, tt.want)
		}
	}
}
