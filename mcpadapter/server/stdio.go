// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/consort-go/consort/mcpadapter/server/internal/output"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/envelope"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// Serve serves one client over a pair of streams, for example standard input and output
// (MCP 2025-11-25, basic/transports § stdio), until the client ends its stream, ctx
// ends, or the server is closed. If the client ends its stream, calls under way are
// answered first; if ctx ends, they are cancelled. Serve closes both streams. It
// returns nil, the error of ctx, or the error of a stream.
//
// A line that is not a valid message, or has more than Options.MaxBody bytes, is
// answered with an error and otherwise ignored.
//
// If a client reads nothing for a minute while there is something to read, Serve ends
// its session with an error, because all further responses would be kept in memory. A
// Write of out may then still be under way when Serve returns: on some systems a write
// to standard output cannot be interrupted.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) (err error) {
	values := append(s.options.Trusted[:len(s.options.Trusted):len(s.options.Trusted)], invoker.TrustedFrom(ctx)...)
	name := "stdio " + rand.Text()
	t := newStream(s, name, in, out)
	identity := cmp.Or(access.IdentityFrom(ctx), access.Identity("", values)) // a transport knows more, such as the token
	ctx = access.WithIdentity(ctx, identity)
	client := cmp.Or(access.OriginFrom(ctx).Client, name) // which may have several streams
	from := &caller{
		ctx: invoker.WithTrusted(ctx, values...), identity: identity, client: client, asks: true, gone: t.eof,
		slot: s.clients.Slot(client), route: routeOfStream(in),
	}
	if s.access != nil {
		t.lines = &lines{logs: s.access, peer: from.route}
		from.lines = t.lines
		defer t.lines.abandon()
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
	if t.output.HasStalled() {
		s.log.Warn("a client has stopped reading: its session is ended", logevent.ServeStreamStalled)
		return output.ErrNotReading
	}
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil // the client has closed its end
	}
	return err
}

// streams holds the sessions over streams.
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

// end ends all sessions, and waits for their Serve to return.
func (s *streams) end() {
	s.mu.Lock()
	s.ended = true
	for session, t := range s.of {
		t.output.Shorten()
		go func() { _ = session.Close() }()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// stream is the server's side of the stdio transport. It replaces the SDK's transport,
// which an invalid line ends, and which drops the responses of calls under way when the
// client ends its stream.
type stream struct {
	server *Server
	name   string
	in     io.ReadCloser
	output *output.Output
	lines  *lines // of the access log; nil without one

	messages chan jsonrpc.Message
	eof      chan struct{} // closed when the client has sent its last message
	readErr  error         // set before eof is closed
	stopped  chan struct{} // closed when reading must stop
	stopOnce sync.Once
	reader   sync.WaitGroup

	mu      sync.Mutex
	open    map[any]bool  // calls without a response
	settled chan struct{} // closed when the stream has ended and open is empty
	ended   bool
}

func newStream(s *Server, name string, in io.ReadCloser, out io.WriteCloser) *stream {
	t := &stream{
		server: s, name: name, in: in, messages: make(chan jsonrpc.Message), eof: make(chan struct{}),
		stopped: make(chan struct{}), open: make(map[any]bool), settled: make(chan struct{}),
	}
	t.output = output.New(out, s.stall, t.end)
	return t
}

// Connect implements mcp.Transport.
func (t *stream) Connect(context.Context) (mcp.Connection, error) {
	t.reader.Go(t.read)
	return t, nil
}

// SessionID implements mcp.Connection. It returns a name that identifies this stream.
func (t *stream) SessionID() string { return t.name }

// Close implements mcp.Connection.
func (t *stream) Close() error {
	t.end()
	return t.output.Close()
}

// leave ends the stream: calls under way are cancelled, and the client has a short time
// for each piece of output that is left.
func (t *stream) leave() {
	t.output.Shorten()
	t.end()
}

// end stops reading.
func (t *stream) end() {
	t.stopOnce.Do(func() {
		close(t.stopped)
		_ = t.in.Close()
	})
}

// close waits for the reader. The wait is bounded, because on some systems a read of
// standard input cannot be interrupted.
func (t *stream) close() {
	t.end()
	_ = t.output.Close()
	gone := make(chan struct{})
	go func() {
		t.reader.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(wire.EndTimeout):
	}
	t.mu.Lock()
	left := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	t.answered(left...)
}

// Read implements mcp.Connection. It returns EOF to the SDK only after the calls under
// way are answered, because the SDK would drop their responses.
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

// settle closes settled if the stream has ended and no call waits for its response. The
// caller must hold t.mu.
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
	err = t.output.WriteLine(text)
	if response, ok := message.(*jsonrpc.Response); ok {
		t.lines.end(response.ID, len(text))
		t.answered(response.ID.Raw())
	}
	return err
}

// answered records that calls have got their response, or will get none.
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

// read passes the messages of the client to Read.
func (t *stream) read() {
	defer close(t.eof)
	lines := bufio.NewReaderSize(t.in, 64<<10)
	for {
		t.output.MakeRoom()
		line, large, err := readLine(lines, t.server.options.MaxBody)
		if line = wire.Trim(line); large {
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

// readLine returns a line. If it has more than most bytes, readLine skips it and
// reports that it is large.
func readLine(r *bufio.Reader, most int64) (line []byte, large bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if large = large || int64(len(line)+len(part)) > most+1; large {
			line = nil // the rest of the line is skipped
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, large, err
		}
	}
}

// take passes on the message of a line, if it is valid. It returns false if reading has
// stopped.
func (t *stream) take(line []byte) bool {
	e, err := envelope.Read(line)
	if err == nil && e.Batch {
		err = errors.New("batches are not accepted")
	}
	if err != nil {
		t.refuse(jsonrpc.CodeInvalidRequest, "the message is refused: "+err.Error())
		return true
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		t.refuse(jsonrpc.CodeParseError, "the line is not a JSON-RPC 2.0 message")
		return true
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		if t.server.options.Telemetry != nil || t.lines != nil {
			numbered(request)
		}
		t.lines.begin(request)
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

// asked records that a call waits for its response.
func (t *stream) asked(id any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open[id] {
		t.open[id] = true
		t.server.answering.enter()
	}
}

func (t *stream) refuse(code int64, message string) {
	t.server.refusals.Info("a line of the client is refused", logevent.ServeRequestRefused, zap.String("reason", message))
	_ = t.output.WriteLine(refusalText(code, message))
}
