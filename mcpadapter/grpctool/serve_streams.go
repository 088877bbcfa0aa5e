// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"container/list"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/listening"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// gRPC gives a handler its request when all of it has arrived, and waits for
// that without a limit. The bounds here begin with the header of a request.
const (
	maxArriving = 1024 // requests that have not arrived, of all clients
	maxWatches  = 1024 // streams that watch the health
)

// arrivals bounds the requests of a listener that have not arrived.
type arrivals struct {
	watches atomic.Int64

	mu      sync.Mutex
	waiting *list.List // of *arrival, the oldest first
}

// arrival is a stream of a client. Its timer ends it when the client takes too
// long, to send the request or to read the answer.
type arrival struct {
	of     *arrivals
	cancel context.CancelFunc
	timer  *time.Timer
	at     *list.Element // nil when the request has arrived; of.mu guards it
}

type arrivalKey struct{}

// begin bounds the stream of ctx. If there are too many that have not arrived,
// the oldest one ends.
func (a *arrivals) begin(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	r := &arrival{of: a, cancel: cancel}
	r.timer = time.AfterFunc(listening.RequestTimeout, cancel)
	a.mu.Lock()
	r.at = a.waiting.PushBack(r)
	var oldest *arrival
	if a.waiting.Len() > maxArriving {
		oldest = a.waiting.Front().Value.(*arrival)
	}
	a.mu.Unlock()
	if oldest != nil {
		oldest.arrived()
		oldest.cancel()
	}
	context.AfterFunc(ctx, r.arrived) // or it never will
	return context.WithValue(ctx, arrivalKey{}, r)
}

// arrived notes that nothing is waited for.
func (r *arrival) arrived() {
	r.timer.Stop()
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.at != nil {
		r.of.waiting.Remove(r.at)
		r.at = nil
	}
}

// answering gives the client of a stream its time to read what is sent; done is
// called when it has left.
func answering(stream context.Context) (done func()) {
	r, ok := stream.Value(arrivalKey{}).(*arrival)
	if !ok || stream.Err() != nil {
		return func() {}
	}
	r.timer.Reset(listening.RequestTimeout)
	return func() { r.timer.Stop() }
}

// serveRequest notes that the request of a stream has arrived and is served.
// When answered is called, the client has a limited time to read the answer.
func serveRequest(stream context.Context) (answered func()) {
	if r, ok := stream.Value(arrivalKey{}).(*arrival); ok {
		r.arrived()
	}
	if from, ok := peer.FromContext(stream); ok {
		context.AfterFunc(stream, listening.ServeRequest(from.Addr))
	}
	return func() { answering(stream) }
}

// tap sees the header of each request, on the goroutine that reads the
// connection.
func (s *Server) tap(a *arrivals) tap.ServerInHandle {
	return func(ctx context.Context, request *tap.Info) (context.Context, error) {
		if request.FullMethodName == healthpb.Health_Watch_FullMethodName {
			if a.watches.Add(1) > maxWatches {
				a.watches.Add(-1)
				return nil, status.Error(codes.ResourceExhausted, "too many streams watch the health")
			}
			context.AfterFunc(ctx, func() { a.watches.Add(-1) })
			return ctx, nil
		}
		if s.options.knowsByToken() && isOurs(request.FullMethodName) {
			if _, err := s.identify(metadata.NewIncomingContext(ctx, request.Header)); err != nil {
				return nil, err // before it takes memory
			}
		}
		return a.begin(ctx), nil
	}
}

// knowsByToken reports whether a request is refused by looking at its static
// token alone, which takes no time.
func (o *ServerOptions) knowsByToken() bool {
	return o.Authenticate == nil && o.Certificate == nil && (o.Token != "" || len(o.Tokens) > 0)
}

// isOurs reports whether a method is one that asks for an identity.
func isOurs(method string) bool {
	return !strings.HasPrefix(method, "/grpc.health.") && !strings.HasPrefix(method, "/grpc.reflection.")
}
