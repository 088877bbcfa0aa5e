// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// counter is an invoker that counts its calls.
type counter struct{ calls int }

func (c *counter) Definition() *invoker.Definition { return &invoker.Definition{Name: "count"} }

func (c *counter) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	c.calls++
	return invoker.Output{}, nil
}

// TestEndedSessionIsNotLost: a ping that fails because its connection was closed on
// request is not a loss.
func TestEndedSessionIsNotLost(t *testing.T) {
	e := Local("e", &counter{})
	defer e.Close(t.Context())
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := e.supervisor.current
	if err := e.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.lose(errors.New("no answer"))
	if now := e.Snapshot(); now.State != Idle || now.LastError != nil {
		t.Errorf("the snapshot is %+v", now)
	}
}

// TestNoCallBeginsOverEndedSession: the connection ends after a call has selected it and
// before the call starts.
func TestNoCallBeginsOverEndedSession(t *testing.T) {
	c := &counter{}
	e := Local("e", c)
	defer e.Close(t.Context())
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, target, err := tools[0].target(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock := startClock(t.Context(), &e.options)
	defer clock.stop()
	_, begun, err := tools[0].invokeOver(t.Context(), clock, s, target, &invoker.Call{})
	if begun || !errors.Is(err, errDisconnected) || c.calls != 0 {
		t.Errorf("begun %v, %v, %d calls", begun, err, c.calls)
	}
	if _, err := tools[0].Invoke(t.Context(), nil); err != nil || c.calls != 1 {
		t.Errorf("the whole call: %v, %d calls", err, c.calls)
	}
}
