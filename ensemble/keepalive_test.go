// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// unreadSource makes connections that read nothing from a time on; the zero time is
// never.
type unreadSource struct {
	source ensemble.Source
	from   time.Time
}

func (s *unreadSource) Open(ctx context.Context) (ensemble.Connection, error) {
	opened, err := s.source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &unreadConnection{opened, opened.(ensemble.Pinger), s}, nil
}

type unreadConnection struct {
	ensemble.Connection
	ensemble.Pinger
	of *unreadSource
}

func (c *unreadConnection) Unread() time.Duration {
	if c.of.from.IsZero() {
		return 0
	}
	return max(0, time.Since(c.of.from))
}

// While a call runs, a connection that reads nothing is lost in the time that an
// answer to a ping has; one that reads has the time of the call.
func TestKeepAliveWithoutReading(t *testing.T) {
	for name, test := range map[string]struct {
		every, connect time.Duration
		reads          bool
		want           invoker.Code
		after          time.Duration
	}{
		"at least 5 s":    {time.Second, time.Minute, false, invoker.OutcomeUnknown, 5 * time.Second},
		"the interval":    {20 * time.Second, time.Minute, false, invoker.OutcomeUnknown, 20 * time.Second},
		"connect timeout": {time.Second, 3 * time.Second, false, invoker.OutcomeUnknown, 3 * time.Second},
		"off":             {0, time.Minute, false, invoker.Timeout, 4 * time.Minute},
		"it reads":        {time.Second, time.Minute, true, invoker.Timeout, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &unreadSource{source: ensembletest.NewSource(ensembletest.NewGate("gate", false))}
				began := time.Now()
				if !test.reads {
					source.from = began
				}
				e := ensemble.New("e", source, &ensemble.Options{KeepAlive: test.every, ConnectTimeout: test.connect, CallTimeout: 4 * time.Minute})
				tool := toolOf(t, e, "gate") // takes no time
				_, failure := invoke(t.Context(), tool)
				wantFailure(t, failure, test.want, false)
				if took := time.Since(began); took != test.after {
					t.Errorf("it took %s, want %s: %v", took, test.after, failure)
				}
				if cause := e.Snapshot().LastError; test.want == invoker.OutcomeUnknown && !strings.Contains(cause.Error(),
					"keep-alive: the server has read nothing for "+test.after.String()) {
					t.Errorf("it was lost because of %v", cause)
				}
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A ping without an answer does not end a connection while a call runs that was
// made after it: a server that works on one request at a time may have begun with
// the call.
func TestPingMeetsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", false)
		source := ensembletest.NewSource(gate)
		e := ensemble.New("e", source, &ensemble.Options{KeepAlive: time.Minute, CallTimeout: 5 * time.Minute})
		tool := toolOf(t, e, "gate")
		release := source.Hang(ensembletest.Ping, false)
		time.Sleep(time.Minute + time.Second) // the ping waits for its answer
		time.AfterFunc(4*time.Minute, func() { gate.Release("done") })
		text, failure := invoke(t.Context(), tool)
		if failure != nil || text != "done" || source.Count(ensembletest.Ping) != 1 {
			t.Errorf("%q, %v after %d pings; want done after 1", text, failure, source.Count(ensembletest.Ping))
		}
		wantState(t, e, ensemble.Ready)
		time.Sleep(2*time.Minute + 6*time.Second) // now without a call
		wantState(t, e, ensemble.Lost)
		release()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
