// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// transports observes gRPC's transport layer: how many HTTP/2 connections are open, and
// which requests have been passed to one.
type transports struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when open is 0
}

func newTransports() *transports {
	t := &transports{none: make(chan struct{})}
	close(t.none)
	return t
}

// request is one RPC.
type request struct {
	left     atomic.Bool // it may have reached the server
	answered atomic.Bool // a response has begun to arrive
	said     atomic.Bool // the server, or a proxy in front of it, ended it with a gRPC status
}

type requestKey struct{}

func withRequest(ctx context.Context) (context.Context, *request) {
	r := new(request)
	return context.WithValue(ctx, requestKey{}, r), r
}

// TagRPC implements [stats.Handler].
func (t *transports) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler]. gRPC resends a request by itself only if the
// server has certainly not processed it.
func (t *transports) HandleRPC(ctx context.Context, event stats.RPCStats) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.Begin: // of an attempt
		r.left.Store(false)
		r.said.Store(false)
	case *stats.OutPayload:
		r.left.Store(true)
	case *stats.InHeader:
		r.answered.Store(true)
	case *stats.InTrailer:
		r.said.Store(true)
	}
}

// TagConn implements [stats.Handler].
func (t *transports) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (t *transports) HandleConn(_ context.Context, event stats.ConnStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch event.(type) {
	case *stats.ConnBegin:
		if t.open++; t.open == 1 {
			t.none = make(chan struct{})
		}
	case *stats.ConnEnd:
		if t.open--; t.open == 0 {
			close(t.none)
		}
	}
}

// gone returns a channel that is closed when no connection is open.
func (t *transports) gone() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.none
}
