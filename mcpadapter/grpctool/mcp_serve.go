// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// frames is the server's side of a stream.
type frames = grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]

// mcpHandlers serve MCP. A panic ends only its session.
type mcpHandlers struct {
	toolspb.UnimplementedMcpServiceServer
	handlers
	mcp *server.Server
}

// Connect implements the service. It passes the frames of the stream to an MCP server as
// lines.
func (h mcpHandlers) Connect(stream frames) (err error) {
	defer h.contain(stream.Context(), &err)
	from, err := h.server.identify(stream.Context())
	if err != nil {
		return err
	}
	leave, refused := h.server.enter(from.client, access.Stream)
	if refused != nil {
		return refusal(refused)
	}
	defer leave()
	defer serveRequest(stream.Context())()
	if err := stream.Send(&toolspb.ConnectResponse{}); err != nil { // tells the client that it is admitted
		return err
	}
	ctx, cancel := context.WithCancelCause(from.ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.server.life, func() { cancel(errServerClosed) })()
	arrive := func() time.Duration { return h.server.clients.Arrive(from.client) }
	in := newFrameReader(stream, arrive, h.server.closed)
	in.peer = clientOf(ctx)
	of, remove := h.server.addStream(from.ctx, in, from)
	defer remove()
	err = h.mcp.Serve(ctx, in, &frameWriter{stream: stream, most: h.server.options.MaxMessage})
	if why, ok := openstreams.Reason(of); ok {
		return status.Error(codes.Unauthenticated, why)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		logevent.Log(ctx, h.server.log, zapcore.InfoLevel, "a stream of MCP ended", logevent.ServeStreamFailed, zap.Error(err))
		return status.Error(codes.Aborted, "the session ended")
	}
	return nil
}

// frameReader reads the frames of a client as lines. It ends when the client has sent
// its last frame, or when the server shuts down: calls under way are then answered, and
// no new ones begin. Frames beyond the client's rate are read later; meanwhile, gRPC's
// flow control makes the client wait.
type frameReader struct {
	frames  chan []byte
	arrive  func() time.Duration
	peer    telemetry.Peer
	ending  <-chan struct{}
	closed  chan struct{}
	closing sync.Once
	line    []byte
}

func newFrameReader(stream frames, arrive func() time.Duration, ending <-chan struct{}) *frameReader {
	r := &frameReader{frames: make(chan []byte), arrive: arrive, ending: ending, closed: make(chan struct{})}
	go r.receive(stream) // ends with the stream
	return r
}

func (r *frameReader) receive(stream frames) {
	defer close(r.frames)
	for {
		frame, err := stream.Recv()
		if err != nil {
			return
		}
		for wait := r.arrive(); wait > 0; wait = r.arrive() {
			select {
			case <-time.After(wait):
			case <-r.closed:
				return
			}
		}
		select {
		case r.frames <- frame.GetMessage():
		case <-r.closed:
			return
		}
	}
}

// Read implements io.Reader, for one goroutine.
func (r *frameReader) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		select {
		case <-r.closed: // also if a frame has arrived: its sender may have lost access
			return 0, io.EOF
		default:
		}
		select {
		case frame, ok := <-r.frames:
			if !ok {
				return 0, io.EOF
			}
			// In JSON, line ends occur only between tokens.
			r.line = append(bytes.ReplaceAll(frame, []byte{'\n'}, []byte{' '}), '\n')
		case <-r.ending:
			return 0, io.EOF
		case <-r.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// Route implements [mcpadapter.Routed].
func (r *frameReader) Route() telemetry.Peer {
	p := r.peer
	p.System = "" // the stream carries JSON-RPC
	return p
}

// Close implements io.Closer.
func (r *frameReader) Close() error {
	r.closing.Do(func() { close(r.closed) })
	return nil
}

// frameWriter sends lines as frames.
type frameWriter struct {
	stream frames
	most   int // bytes of a frame
	closed atomic.Bool
	mu     sync.Mutex
	line   []byte // incomplete line
}

// Write implements io.Writer. A client that does not read blocks it for up to 30 s;
// then the stream ends.
func (w *frameWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, p...)
	for {
		line, rest, found := bytes.Cut(w.line, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		if w.closed.Load() || w.send(line) != nil {
			w.closed.Store(true)
			return 0, io.ErrClosedPipe
		}
		w.line = rest
	}
}

func (w *frameWriter) send(line []byte) error {
	defer answering(w.stream.Context())()
	return w.stream.Send(&toolspb.ConnectResponse{Message: fitting(line, w.most)})
}

// Close implements io.Closer. It does not wait for a Write under way.
func (w *frameWriter) Close() error {
	w.closed.Store(true)
	return nil
}
