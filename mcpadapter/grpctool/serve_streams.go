// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/listening"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

// gRPC gives a handler its request when all of it has arrived, and waits for
// that without a limit. The bounds here begin with the header of a request.
const (
	maxUnknown  = 1024 // requests whose credentials are being checked
	maxArriving = 1024 // requests of identified clients that have not arrived
	maxOpen     = 256  // the same, of the services that ask for no identity
	maxStanding = 1024 // streams of those services: they watch the health, or ask about the services
)

// streams bounds the streams of a listener. Those of clients that are not
// identified have bounds of their own.
type streams struct {
	server                            *Server
	unknown, arriving, open, standing waiting
}

func newStreams(s *Server) *streams {
	return &streams{
		server:   s,
		unknown:  waiting{most: maxUnknown, limit: listening.RequestTimeout, full: s.streamsFull},
		arriving: waiting{most: maxArriving, limit: listening.RequestTimeout, full: s.streamsFull},
		open:     waiting{most: maxOpen, limit: listening.RequestTimeout, full: s.streamsFull},
		standing: waiting{most: maxStanding, full: s.streamsFull},
	}
}

// streamsFull logs that streams were ended at a bound.
func (s *Server) streamsFull(closed int, address string) {
	s.log.Warn("there are too many requests that have not arrived, or open streams: some are ended", event.ServeFull, zap.Int("closed", closed), zap.String("from", address))
}

// waiting bounds streams that wait, mostly for their clients. At the bound, the
// address that has most of them loses one: the oldest, of the connection that has
// most.
type waiting struct {
	most  int
	limit time.Duration                    // for a request to arrive; 0 is none
	full  func(closed int, address string) // is told of the bound, as in listening.Limits

	mu     sync.Mutex
	of     listening.Queue[*arrival]
	closed listening.Closed
}

// arrival is a stream that waits. Its timer ends it when that takes too long, and
// later, when the client takes too long to read what the handler sends. What is sent
// as the handler returns has left it: gRPC keeps that until the client reads it.
type arrival struct {
	cancel  context.CancelFunc
	address string
	in      *waiting
	timer   *time.Timer      // nil if there is no limit
	at      *listening.Place // nil when the request has arrived; in.mu guards it
}

type (
	arrivalKey struct{}
	cancelKey  struct{}
)

// tapStream makes it possible to end a stream: one that reads is ended by
// nothing but the context that it gets here, before it begins. It refuses none.
// gRPC sets a timer for the grpc-timeout of a client first, and stops it only at
// the end of a stream that has begun (grpc-go, transport.http2Server.operateHeaders).
func tapStream(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, cancelKey{}, cancel), nil
}

// add bounds the stream of ctx until arrived is called.
func (w *waiting) add(ctx context.Context) *arrival {
	cancel, _ := ctx.Value(cancelKey{}).(context.CancelFunc)
	from, _ := peer.FromContext(ctx) // each stream of Serve has both
	r := &arrival{cancel: cancel, in: w, address: callers.Address(from.Addr.String())}
	if w.limit > 0 {
		r.timer = time.AfterFunc(w.limit, r.cancel)
	}
	w.mu.Lock()
	r.at = w.of.Add(r, r.address, from.Addr)
	var victim *arrival
	report := 0
	if w.of.Len() > w.most {
		victim, _ = w.of.Next()
		victim.leave()
		report = w.closed.Add()
	}
	w.mu.Unlock()
	if victim != nil {
		victim.cancel()
	}
	if report > 0 {
		w.full(report, victim.address)
	}
	return r
}

// await bounds the stream of ctx until its request has arrived, or it ends.
func (w *waiting) await(ctx context.Context) context.Context {
	r := w.add(ctx)
	context.AfterFunc(ctx, r.arrived)
	return context.WithValue(ctx, arrivalKey{}, r)
}

// arrived notes that nothing is waited for.
func (r *arrival) arrived() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.leave()
}

// leave takes the stream out of those that wait. r.in.mu is held.
func (r *arrival) leave() {
	if r.at != nil {
		r.at.Remove()
		r.at = nil
	}
}

// answering gives the client of a stream its time to read what is sent; done is
// called when it has left.
func answering(stream context.Context) (done func()) {
	r, ok := stream.Value(arrivalKey{}).(*arrival)
	if !ok || r.timer == nil || stream.Err() != nil {
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

// identified is for services that ask for an identity: a client without one is
// refused before its request takes memory. To check credentials may take long, too.
func (b *streams) identified(stream grpc.ServerStream, _ bool) (context.Context, error) {
	unknown := b.unknown.add(stream.Context())
	ctx, err := b.server.verified(stream.Context())
	unknown.arrived()
	if err != nil {
		return nil, err
	}
	return b.arriving.await(ctx), nil
}

// anybody is for services that ask for none. Some of their streams are long by
// design: such a stream may stay until there are too many.
func (b *streams) anybody(stream grpc.ServerStream, isLong bool) (context.Context, error) {
	if isLong {
		return b.standing.await(stream.Context()), nil
	}
	return b.open.await(stream.Context()), nil
}

// admitted registers services on a server of gRPC. Before anything is read of a
// request, admit refuses it or returns the context of its handler. An
// interceptor of gRPC would see a request after it was read.
type admitted struct {
	on    grpc.ServiceRegistrar
	admit func(stream grpc.ServerStream, isLong bool) (context.Context, error)
}

// RegisterService implements [grpc.ServiceRegistrar]. To gRPC, a method is a
// stream with one message in each direction.
func (a admitted) RegisterService(desc *grpc.ServiceDesc, implementation any) {
	service := *desc
	service.Methods, service.Streams = nil, nil
	for _, method := range desc.Methods {
		service.Streams = append(service.Streams, a.stream(grpc.StreamDesc{
			StreamName: method.MethodName,
			Handler: func(of any, stream grpc.ServerStream) error {
				answer, err := method.Handler(of, stream.Context(), stream.RecvMsg, nil)
				if err != nil {
					return err
				}
				return stream.SendMsg(answer)
			},
		}))
	}
	for _, stream := range desc.Streams {
		service.Streams = append(service.Streams, a.stream(stream))
	}
	a.on.RegisterService(&service, implementation)
}

// stream returns a stream whose handler comes after admit.
func (a admitted) stream(desc grpc.StreamDesc) grpc.StreamDesc {
	handle, isLong := desc.Handler, desc.ClientStreams || desc.ServerStreams
	desc.Handler = func(of any, stream grpc.ServerStream) error {
		ctx, err := a.admit(stream, isLong)
		if err != nil {
			return err
		}
		return handle(of, &admittedStream{ServerStream: stream, ctx: ctx})
	}
	return desc
}

// admittedStream is a stream with another context.
type admittedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s *admittedStream) Context() context.Context { return s.ctx }
