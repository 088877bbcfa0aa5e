// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/engine/enginetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
)

// What every engine must do, on a real server over CONSORT_TEMPORAL_STORE, which is sqlite or
// postgresql.
func TestEngine(t *testing.T) {
	address := temporalserver.Start(t, os.Getenv("CONSORT_TEMPORAL_STORE"))
	var cases atomic.Int64
	enginetest.TestEngine(t, func(t *testing.T) enginetest.Harness {
		h := &harness{t: t, address: address, name: "case-" + strconv.FormatInt(cases.Add(1), 10), store: history.NewMemory(), stream: engine.NewStream()}
		return enginetest.Harness{Store: h.store, Start: h.start}
	})
}

// harness starts engines with a worker each, of which those of one case share a
// queue.
type harness struct {
	t             *testing.T
	address, name string
	store         history.Store
	stream        engine.Stream
}

func (h *harness) start(open func(history.Log) converse.OpenFunc) (enginetest.Process, error) {
	c, err := dial(h.address)
	if err != nil {
		return enginetest.Process{}, err
	}
	mortal := enginetest.NewMortal(h.store)
	w, err := NewWorker(c, mortal, open(mortal), &WorkerOptions{
		Queue: h.name, Prefix: h.name + "/", Stream: h.stream,
		Heartbeat: time.Second, Backoff: 50 * time.Millisecond, Idle: time.Second, Sweep: time.Second, Grace: time.Second,
	})
	if err != nil {
		return enginetest.Process{}, err
	}
	e, err := NewEngine(c, mortal, &Options{Queue: h.name, Prefix: h.name + "/", Stream: h.stream, Open: open(mortal), Poll: 50 * time.Millisecond})
	p := &inProcess{Engine: e, worker: w}
	return enginetest.Process{Engine: p, Kill: func() {
		mortal.Kill()
		c.Close() // and with it the heartbeats
		ended := make(chan struct{})
		go func() { // what is left of it says nothing to anybody
			defer close(ended)
			_ = p.Close(context.Background())
		}()
		h.t.Cleanup(func() { <-ended })
	}}, err
}

// inProcess is an engine and a worker in one process.
type inProcess struct {
	*Engine
	worker *Worker
}

// Close lets turns go on until ctx ends, and then puts them down.
func (p *inProcess) Close(ctx context.Context) error {
	err := p.Engine.Close(ctx)
	if closed := p.worker.Close(); err == nil {
		err = closed
	}
	return err
}
