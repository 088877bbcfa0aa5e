// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// wall forwards connections to a server. When it falls silent, existing connections stay
// open and deliver nothing more.
type wall struct {
	net.Listener
	silence atomic.Int64           // how often it fell silent
	cut     atomic.Pointer[string] // the next connection that carries this text is cut, and cut becomes nil
	end     func()                 // once
}

func newWall(t *testing.T, server string) *wall {
	t.Helper()
	w := &wall{Listener: must(net.Listen("tcp", "127.0.0.1:0"))}
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := w.Accept()
			if err != nil {
				return
			}
			far := must(net.Dial("tcp", server))
			born := w.silence.Load()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				running.Go(func() { w.pass(pair[0], pair[1], born, end) })
			}
		}
	})
	w.end = sync.OnceFunc(func() {
		_ = w.Close()
		close(end)
		running.Wait()
	})
	t.Cleanup(w.end)
	return w
}

// pass forwards data until one side or the test ends.
func (w *wall) pass(from, to net.Conn, born int64, end <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1<<16)
		for {
			n, err := from.Read(buffer)
			if w.silence.Load() != born {
				return
			}
			if text := w.cut.Load(); text != nil && bytes.Contains(buffer[:n], []byte(*text)) && w.cut.CompareAndSwap(text, nil) {
				_, _ = from.Close(), to.Close()
				return
			}
			if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
				_ = to.Close()
				return
			}
		}
	}()
	<-end
	_, _ = from.Close(), to.Close()
	<-ended
}

// A connection that has fallen silent, for example because a machine in between has
// forgotten it, delays a watcher at most for Options.Timeout.
func TestWatchOverAConnectionThatIsSilent(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	between := newWall(t, must(url.Parse(dsn)).Host)
	store, err := Open(t.Context(), as(t, dsn, "", "", "", between.Addr().String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	defer between.end()
	store.timeout, store.listener.heartbeat = 200*time.Millisecond, 100*time.Millisecond
	between.silence.Add(1)
	for _, err := range store.Watch(patient(t), "talk") {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// A write whose deadline passes on a connection that has fallen silent closes the others too, so that the next write
// does not wait on one of them.
func TestDeadlineOnAConnectionThatIsSilent(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	between := newWall(t, must(url.Parse(dsn)).Host)
	s := openAt(t, as(t, dsn, "", "", "", between.Addr().String()), &Options{Connections: 2})
	defer between.end()
	one, two := must(s.pool.Acquire(t.Context())), must(s.pool.Acquire(t.Context()))
	one.Release()
	two.Release()
	between.silence.Add(1)
	s.timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, "talk", 0, storetest.Says("c0", "impatient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one is told %v", err)
	}
	storetest.Add(t, s, "talk", 0, "patient")
}
