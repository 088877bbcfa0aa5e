// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// Serve serves one client over a pair of streams, such as the standard ones
// (MCP 2025-11-25, basic/transports § stdio), until the client ends its stream,
// ctx ends, or the server is closed. The calls of a client that has ended its
// stream get their answers first; when ctx ends they are cancelled. Serve closes
// both streams. It returns nil, the error of ctx, or what is wrong with a stream.
//
// A line that is no message is answered with an error and does no harm, and so
// is one of more than ServerOptions.MaxBody bytes.
//
// A client that reads nothing for a minute while there is something to read has
// its session ended, with an error: each answer would be kept in memory. Then a
// Write of out may still be under way when Serve returns, since a write to
// standard output can be interrupted by nothing on some systems.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) (err error) {
	values := append(s.options.Trusted[:len(s.options.Trusted):len(s.options.Trusted)], invoker.TrustedFrom(ctx)...)
	name := "stdio " + rand.Text()
	t := newStream(s, name, in, out)
	from := &caller{
		ctx: invoker.WithTrusted(ctx, values...), identity: callers.Identity("", values), client: name, asks: true, gone: t.eof,
		slot: s.clients.Slot(name), route: routeOfStream(in),
	}
	from.lasting = s.options.Telemetry.StartSession(from.route, false)
	defer func() { from.lasting.End(endOfStream(err, ctx.Err() != nil)) }()
	session, err := s.sdk.Connect(context.WithValue(context.WithoutCancel(ctx), callerKey{}, from), t, nil)
	if err != nil {
		t.close()
		return err
	}
	if !s.streams.add(session, t) {
		_ = session.Close()
		t.close()
		return errServerClosed
	}
	defer s.streams.remove(session)
	defer t.close()
	stop := context.AfterFunc(ctx, t.leave)
	err = session.Wait()
	if !stop() {
		return ctx.Err()
	}
	if t.output.hasStalled() {
		s.log.Warn("a client has stopped reading: its session is ended", event.ServeStreamStalled)
		return errClientNotReading
	}
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil // the client has stopped to listen: it is gone
	}
	return err
}

// streams are the sessions over streams.
type streams struct {
	mu    sync.Mutex
	of    map[*mcp.ServerSession]*stream
	ended bool
	all   sync.WaitGroup
}

func (s *streams) add(session *mcp.ServerSession, t *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if s.of == nil {
		s.of = make(map[*mcp.ServerSession]*stream)
	}
	s.of[session] = t
	s.all.Add(1)
	return true
}

func (s *streams) remove(session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, session)
	s.all.Done()
}

// end ends all of them, and waits for their Serve.
func (s *streams) end() {
	s.mu.Lock()
	s.ended = true
	for session, t := range s.of {
		t.output.hurry()
		go func() { _ = session.Close() }()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// stream is the server's side of the stdio transport. It stands where the SDK's
// own would, which a stray line ends, and which drops the answers of the calls
// under way when the client ends its stream.
type stream struct {
	server *Server
	name   string
	in     io.ReadCloser
	output *output

	messages chan jsonrpc.Message
	eof      chan struct{} // closed when the client has said all
	readErr  error         // set before
	stopped  chan struct{} // closed when nothing is to be read any more
	stopOnce sync.Once
	reader   sync.WaitGroup

	mu      sync.Mutex
	open    map[any]bool  // the calls without an answer
	settled chan struct{} // closed at the end of the stream when there are none
	ended   bool
}

func newStream(s *Server, name string, in io.ReadCloser, out io.WriteCloser) *stream {
	t := &stream{
		server: s, name: name, in: in, messages: make(chan jsonrpc.Message), eof: make(chan struct{}),
		stopped: make(chan struct{}), open: make(map[any]bool), settled: make(chan struct{}),
	}
	t.output = newOutput(out, s.stall, t.end)
	return t
}

// Connect implements mcp.Transport.
func (t *stream) Connect(context.Context) (mcp.Connection, error) {
	t.reader.Go(t.read)
	return t, nil
}

// SessionID implements mcp.Connection: a name for what belongs to this stream.
func (t *stream) SessionID() string { return t.name }

// Close implements mcp.Connection.
func (t *stream) Close() error {
	t.end()
	return t.output.close()
}

// leave ends the stream: calls under way are cancelled, and the client has a
// little time for each piece of what is still said.
func (t *stream) leave() {
	t.output.hurry()
	t.end()
}

// end stops reading.
func (t *stream) end() {
	t.stopOnce.Do(func() {
		close(t.stopped)
		_ = t.in.Close()
	})
}

// close waits for the reader; not for ever: a read of standard input can be
// interrupted by nothing on some systems.
func (t *stream) close() {
	t.end()
	_ = t.output.close()
	gone := make(chan struct{})
	go func() {
		t.reader.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(straggle):
	}
	t.mu.Lock()
	left := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	t.answered(left...)
}

// Read implements mcp.Connection. The stream ends for the SDK when the calls
// under way have their answers: it would drop those.
func (t *stream) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-t.messages:
		return message, nil
	case <-t.stopped:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.eof:
	}
	t.mu.Lock()
	t.ended = true
	t.settle()
	t.mu.Unlock()
	select {
	case <-t.settled:
	case <-t.stopped:
	case <-ctx.Done():
	}
	if t.readErr != io.EOF {
		return nil, t.readErr
	}
	return nil, io.EOF
}

// settle closes settled when no call waits for its answer. t.mu is held.
func (t *stream) settle() {
	if t.ended && len(t.open) == 0 {
		select {
		case <-t.settled:
		default:
			close(t.settled)
		}
	}
}

// Write implements mcp.Connection.
func (t *stream) Write(_ context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	err = t.output.write(text)
	if response, ok := message.(*jsonrpc.Response); ok {
		t.answered(response.ID.Raw())
	}
	return err
}

// answered notes that a call has its answer, or gets none any more.
func (t *stream) answered(ids ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if t.open[id] {
			delete(t.open, id)
			t.server.answering.leave()
		}
	}
	t.settle()
}

// read hands the messages of the client to Read.
func (t *stream) read() {
	defer close(t.eof)
	lines := bufio.NewReaderSize(t.in, 64<<10)
	for {
		t.output.makeRoom()
		line, large, err := readLine(lines, t.server.options.MaxBody)
		if line = trim(line); large {
			t.refuse(jsonrpc.CodeInvalidRequest, "the message is too large")
		} else if len(line) > 0 && !t.take(line) {
			t.readErr = io.EOF
			return
		}
		if err != nil {
			t.readErr = err
			return
		}
	}
}

// readLine returns a line, unless it has more than most bytes.
func readLine(r *bufio.Reader, most int64) (line []byte, large bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if large = large || int64(len(line)+len(part)) > most+1; large {
			line = nil // the rest of it is passed over
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, large, err
		}
	}
}

// take hands on the message of a line, if it is one. It reports false when
// nobody takes it any more.
func (t *stream) take(line []byte) bool {
	e, err := inspect(line)
	if err == nil && e.batch {
		err = errors.New("batches are not taken")
	}
	if err != nil {
		t.refuse(jsonrpc.CodeInvalidRequest, "the message is refused: "+err.Error())
		return true
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		t.refuse(jsonrpc.CodeParseError, "the line is no message of JSON-RPC 2.0")
		return true
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		if t.server.options.Telemetry != nil {
			numbered(request)
		}
		if request.Method != "subscriptions/listen" {
			t.asked(request.ID.Raw())
		}
	}
	select {
	case t.messages <- message:
		return true
	case <-t.stopped:
		return false
	}
}

// asked notes that a call waits for its answer.
func (t *stream) asked(id any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open[id] {
		t.open[id] = true
		t.server.answering.enter()
	}
}

func (t *stream) refuse(code int64, message string) {
	t.server.refusals.Info("a line of the client is refused", event.ServeRequestRefused, zap.String("reason", message))
	_ = t.output.write(refusalText(code, message))
}
