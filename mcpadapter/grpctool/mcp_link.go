// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// MCPLink carries MCP over one bidirectional gRPC stream, with one message in each
// frame (MCP 2025-11-25, basic/transports § Custom Transports). It is a transport of
// the MCP SDK, for one session. All methods may be called concurrently.
type MCPLink struct {
	source     *source
	conn       *grpc.ClientConn
	transports *transports
	stream     grpc.BidiStreamingClient[toolspb.ConnectRequest, toolspb.ConnectResponse]

	life     context.Context // of the stream
	end      context.CancelFunc
	sending  chan struct{} // semaphore of the sender
	messages chan jsonrpc.Message
	ended    chan struct{} // closed when no more messages follow
	readErr  error         // the reason; set before ended is closed
	stalled  atomic.Bool   // the server has stopped reading

	once     sync.Once
	closed   chan struct{}
	closeErr error
}

var (
	_ mcp.Transport  = (*MCPLink)(nil)
	_ mcp.Connection = mcpConnection{}
)

// DialMCP connects to an MCP server over gRPC. It returns after the server has admitted
// the client. The link outlives ctx; the caller must close it.
//
// All callers of the session share one stream, so that TrustedMetadata cannot say on
// whose behalf a call is made. Setting it is an error.
func DialMCP(ctx context.Context, address string, options *Options) (*MCPLink, error) {
	return at(address, options).stream(ctx)
}

// stream opens an MCP stream.
func (s *source) stream(ctx context.Context) (*MCPLink, error) {
	err := s.wrong
	if err == nil && len(s.options.TrustedMetadata) > 0 {
		err = errors.New("Options.TrustedMetadata is sent with each call, but MCP has one stream for all calls")
	}
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", s.options.Server, err)
	}
	l, err := dialMCP(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("server %q: connecting: %w", s.options.Server, explained(err))
	}
	return l, nil
}

func dialMCP(ctx context.Context, s *source) (*MCPLink, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := &MCPLink{
		source: s, transports: newTransports(), sending: make(chan struct{}, 1),
		messages: make(chan jsonrpc.Message), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	conn, err := grpc.NewClient(s.target, append(s.dialOptions(), grpc.WithStatsHandler(l.transports))...)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	l.life, l.end = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, l.end)
	if err = l.open(ctx); err == nil && stop() {
		go l.read()
		return l, nil
	}
	close(l.ended)
	_ = l.tearDown()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, failureOf(err, exchange{what: harmless})
}

// open begins the stream and waits for the server's first frame, which has no message.
// Headers are not enough: proxies such as Dapr's sidecar forward them only together
// with a frame.
func (l *MCPLink) open(ctx context.Context) error {
	dressed, err := l.source.outgoing(ctx, false)
	if err != nil {
		return err
	}
	l.stream, err = toolspb.NewMcpServiceClient(l.conn).Connect(withMetadataOf(l.life, dressed))
	if err != nil {
		return l.source.options.cleaned(dressed, err)
	}
	frame, err := l.stream.Recv()
	if err == nil && len(frame.GetMessage()) > 0 {
		err = status.Error(codes.Internal, "the server sent a message before it accepted the connection")
	}
	return l.source.options.cleaned(dressed, err)
}

// read receives the server's frames. It skips frames that are not messages.
func (l *MCPLink) read() {
	defer close(l.ended)
	for {
		frame, err := l.stream.Recv()
		if err != nil && l.stalled.Load() {
			err = errNotReading
		}
		if err != nil {
			l.readErr = l.source.options.cleaned(l.stream.Context(), err)
			return
		}
		message, err := jsonrpc.DecodeMessage(frame.GetMessage())
		if err != nil {
			l.source.options.Logger.Warn("a frame that is not a message", logevent.FrameRefused, zap.Error(err))
			continue
		}
		select {
		case l.messages <- message:
		case <-l.life.Done():
			l.readErr = errClosed
			return
		}
	}
}

// Connect implements mcp.Transport.
func (l *MCPLink) Connect(context.Context) (mcp.Connection, error) { return mcpConnection{l}, nil }

// Route implements [mcpadapter.Routed]. The stream carries JSON-RPC.
func (l *MCPLink) Route() telemetry.Peer {
	p := l.source.peer
	p.System = ""
	return p
}

// Close ends the stream gracefully, within two seconds and before ctx ends, and
// otherwise forcibly. When it returns, no connection or goroutine is left.
func (l *MCPLink) Close(ctx context.Context) error {
	l.once.Do(func() {
		defer close(l.closed)
		l.goodbye(ctx)
		l.closeErr = l.tearDown()
	})
	<-l.closed
	return l.closeErr
}

// tearDown ends the stream and waits until its connections are closed.
func (l *MCPLink) tearDown() error {
	l.end()
	err := l.conn.Close()
	<-l.ended
	select {
	case <-l.transports.gone():
	case <-time.After(straggle):
		err = errors.Join(err, errOutside)
	}
	if err != nil {
		return fmt.Errorf("server %q: %w", l.source.options.Server, err)
	}
	return nil
}

// goodbye tells the server that no more messages follow, and waits for it to end the
// stream.
func (l *MCPLink) goodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, straggle)
	defer cancel()
	select {
	case <-l.ended:
	case <-ctx.Done():
	case l.sending <- struct{}{}: // kept, so that no message is sent after this
		_ = l.stream.CloseSend()
	}
	for {
		select {
		case <-l.ended:
			return
		case <-ctx.Done():
			return
		case <-l.messages: // discarded
		}
	}
}

// mcpConnection is the view of a link that the SDK gets.
type mcpConnection struct{ *MCPLink }

// SessionID implements mcp.Connection. It is empty because the stream is the session.
func (mcpConnection) SessionID() string { return "" }

// Close implements mcp.Connection. It does not wait until the link is closed.
func (c mcpConnection) Close() error {
	go func() { _ = c.MCPLink.Close(context.Background()) }()
	return nil
}

// Read implements mcp.Connection.
func (c mcpConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-c.messages:
		return message, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ended:
		if errors.Is(c.readErr, io.EOF) {
			return nil, io.EOF
		}
		s := status.Convert(c.readErr)
		if s.Code() == codes.ResourceExhausted && receivedTooLarge.MatchString(s.Message()) {
			return nil, fmt.Errorf("the stream ended: %w: %s", subprocess.ErrMessageTooLarge, s.Message())
		}
		return nil, fmt.Errorf("the stream ended: %s", s.Message())
	}
}

var errNotReading = status.Error(codes.Unavailable, "the server has stopped reading")

// Write implements mcp.Connection. If ctx ends while a message is being sent, the
// message is still sent, because half a message is useless. If the server does not read
// it within a minute, the link ends.
func (c mcpConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	frame := &toolspb.ConnectRequest{Message: text}
	if size := proto.Size(frame); size > c.source.options.MaxMessage {
		return c.refuse(ctx, message, size)
	}
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return mcp.ErrConnectionClosed
	}
	sent := make(chan error, 1)
	go func() { // ends with the stream
		defer func() { <-c.sending }()
		bound := time.AfterFunc(wire.StallTimeout, func() {
			c.stalled.Store(true)
			c.end()
		})
		defer bound.Stop()
		sent <- c.stream.Send(frame)
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
