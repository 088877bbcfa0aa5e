// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
)

// gRPC calls a handler after the whole request has arrived, and waits for it without a
// limit. The limits here apply from the header of a request on.
const (
	maxUnknown  = 1024 // requests whose credentials are being checked
	maxArriving = 1024 // requests of identified clients that have not arrived
	maxOpen     = 256  // the same for services without authentication
	maxStanding = 1024 // streams of those services: they watch the health, or use reflection
)

// streams limits the streams of a listener. Streams of unidentified clients have
// separate limits.
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

// streamsFull logs that streams were ended because a limit was reached.
func (s *Server) streamsFull(closed int, address string) {
	s.log.Warn("too many incomplete requests or open streams: some are ended", logevent.ServeFull, zap.Int("closed", closed), zap.String("from", address))
}

// waiting limits streams that wait, mostly for their clients. At the limit, the address
// with the most streams loses one: the oldest stream of its connection with the most
// streams.
type waiting struct {
	most  int
	limit time.Duration                    // for a request to arrive; 0 means unlimited
	full  func(closed int, address string) // called when the limit is reached, as in listening.Limits

	mu     sync.Mutex
	of     listening.Queue[*arrival]
	closed listening.Closed
}

// arrival is a waiting stream. Its timer ends the stream if the request takes too long
// to arrive and, later, if the client takes too long to read the messages that the
// handler sends. It does not cover the messages sent as the handler returns: gRPC
// buffers these until the client reads them.
type arrival struct {
	cancel  context.CancelFunc
	address string
	in      *waiting
	timer   *time.Timer      // nil if there is no limit
	at      *listening.Place // nil when the request has arrived; guarded by in.mu
}

type (
	arrivalKey struct{}
	cancelKey  struct{}
)

// tapStream makes a stream cancellable: a stream that is reading can be ended only
// through the context that it gets here, before it begins. It refuses no stream. gRPC
// first sets a timer for the client's grpc-timeout, and stops it only at the end of a
// stream that has begun (grpc-go, transport.http2Server.operateHeaders).
func tapStream(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, cancelKey{}, cancel), nil
}

// add counts the stream of ctx as waiting until arrived is called.
func (w *waiting) add(ctx context.Context) *arrival {
	cancel, _ := ctx.Value(cancelKey{}).(context.CancelFunc)
	from, _ := peer.FromContext(ctx) // every stream of Serve has both
	r := &arrival{cancel: cancel, in: w, address: access.Address(from.Addr.String())}
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

// await counts the stream of ctx as waiting until its request has arrived or the stream
// ends.
func (w *waiting) await(ctx context.Context) context.Context {
	r := w.add(ctx)
	context.AfterFunc(ctx, r.arrived)
	return context.WithValue(ctx, arrivalKey{}, r)
}

// arrived records that the stream no longer waits.
func (r *arrival) arrived() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.leave()
}

// leave removes the stream from the waiting streams. The caller must hold r.in.mu.
func (r *arrival) leave() {
	if r.at != nil {
		r.at.Remove()
		r.at = nil
	}
}

// answering limits the time that the client of a stream may take to read a message; the
// caller must call done when the message has been written.
func answering(stream context.Context) (done func()) {
	r, ok := stream.Value(arrivalKey{}).(*arrival)
	if !ok || r.timer == nil || stream.Err() != nil {
		return func() {}
	}
	r.timer.Reset(listening.RequestTimeout)
	return func() { r.timer.Stop() }
}

// serveRequest records that the request of a stream has arrived and is being served.
// After answered is called, the client has a limited time to read the response.
func serveRequest(stream context.Context) (answered func()) {
	if r, ok := stream.Value(arrivalKey{}).(*arrival); ok {
		r.arrived()
	}
	if from, ok := peer.FromContext(stream); ok {
		context.AfterFunc(stream, listening.ServeRequest(from.Addr))
	}
	return func() { answering(stream) }
}

// identified admits streams of services that need an identity: an unidentified client
// is refused before its request takes memory. Streams whose credentials are being
// checked are limited too, because a check may take long.
func (b *streams) identified(stream grpc.ServerStream, _ bool) (context.Context, error) {
	unknown := b.unknown.add(stream.Context())
	ctx, err := b.server.verified(stream.Context())
	unknown.arrived()
	if err != nil {
		return nil, err
	}
	return b.arriving.await(ctx), nil
}

// anybody admits streams of services without authentication. Some of their streams are
// long by design; such a stream may stay until there are too many.
func (b *streams) anybody(stream grpc.ServerStream, isLong bool) (context.Context, error) {
	if isLong {
		return b.standing.await(stream.Context()), nil
	}
	return b.open.await(stream.Context()), nil
}

// admitted registers services on a gRPC server. admit runs before anything of a request
// is read, and refuses it or returns the context of its handler. A gRPC interceptor
// would run only after the request was read.
type admitted struct {
	on    grpc.ServiceRegistrar
	admit func(stream grpc.ServerStream, isLong bool) (context.Context, error)
	logs  *accesslog.Logs // nil without an access log
}

// RegisterService implements [grpc.ServiceRegistrar]. It registers methods as streams,
// because to gRPC a method is a stream with one message in each direction.
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

// stream returns desc with a handler that calls admit first.
func (a admitted) stream(desc grpc.StreamDesc) grpc.StreamDesc {
	handle, isLong := desc.Handler, desc.ClientStreams || desc.ServerStreams
	desc.Handler = func(of any, raw grpc.ServerStream) (err error) {
		stream := &admittedStream{ServerStream: raw, ctx: raw.Context()}
		if a.logs != nil {
			stream.line = accesslog.Begin(desc.StreamName)
			stream.ctx = accesslog.With(stream.ctx, stream.line)
			defer func() { stream.end(a.logs, err) }()
		}
		if stream.ctx, err = a.admit(stream, isLong); err != nil {
			return err
		}
		return handle(of, stream)
	}
	return desc
}

// admittedStream is a stream with a different context, which counts the bytes it sends.
type admittedStream struct {
	grpc.ServerStream
	ctx   context.Context
	line  *accesslog.Line // of the access log; nil without one
	bytes atomic.Int64    // only with a line
}

// Context implements [grpc.ServerStream].
func (s *admittedStream) Context() context.Context { return s.ctx }

// SendMsg implements [grpc.ServerStream].
func (s *admittedStream) SendMsg(m any) error {
	if message, ok := m.(proto.Message); ok && s.line != nil {
		s.bytes.Add(int64(proto.Size(message)))
	}
	return s.ServerStream.SendMsg(m)
}

// end writes the line of the access log for a stream that ended with err.
func (s *admittedStream) end(logs *accesslog.Logs, err error) {
	from, _ := peer.FromContext(s.ServerStream.Context())
	s.line.End(logs, "grpc", access.Address(from.Addr.String()), s.bytes.Load(), zap.String("grpc_status", statusName(status.Convert(err).Code())))
}
