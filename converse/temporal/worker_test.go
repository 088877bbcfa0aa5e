// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"
)

// unhurried is a worker of the SDK that does not end before the turns that it runs.
type unhurried struct {
	worker.Worker
	turns <-chan struct{}
	late  bool
}

func (u *unhurried) Stop() {
	select {
	case <-u.turns:
	case <-time.After(10 * time.Second):
		u.late = true
	}
}

// Close tells turns to end before it stops the worker of the SDK, which stops its other
// workers first, and may wait long for each.
func TestCloseTellsTurnsFirst(t *testing.T) {
	w := &Worker{done: make(chan struct{}), end: func() {}}
	w.stopping, w.stop = context.WithCancel(context.Background())
	l := &lease{timeout: time.Minute, stop: w.stopping.Done(), beat: func(context.Context) error { return nil }}
	work, end := l.begin(t.Context())
	defer end()
	inner := &unhurried{turns: work.Done()}
	w.inner = inner
	if err := w.Close(); err != nil || inner.late {
		t.Errorf("Close: %v; the turn was not told: %v", err, inner.late)
	}
}
