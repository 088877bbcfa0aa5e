// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxResumes is how often a cut stream is resumed without receiving anything new on it.
const maxResumes = 3

// slack is how many bytes a checked event may have beyond the limit for the server's
// own events.
const slack = 1 << 10

// HTTP returns the source of an MCP server that is reached over streamable HTTP (MCP
// 2025-11-25, basic/transports § Streamable HTTP). An invalid URL is reported by Open.
func HTTP(url string, options *HTTPOptions) ensemble.Source {
	return newHTTP(url, options, func(t *roundTripper, limit int) mcp.Transport {
		return &mcp.StreamableClientTransport{
			Endpoint:             t.origin.String(),
			HTTPClient:           t.client(),
			MaxRetries:           maxResumes,
			MaxEventSize:         limit + slack,
			DisableStandaloneSSE: true, // see httpConnection
		}
	})
}

// SSE returns the source of an MCP server that is reached over HTTP with server-sent
// events, the transport that streamable HTTP replaced (MCP 2024-11-05, basic/transports
// § HTTP with SSE). It supports only the older protocols.
func SSE(url string, options *HTTPOptions) ensemble.Source {
	s := newHTTP(url, options, func(t *roundTripper, limit int) mcp.Transport {
		t.apart = true
		return &mcp.SSEClientTransport{
			Endpoint:     t.origin.String(),
			HTTPClient:   t.client(),
			MaxEventSize: limit + slack,
		}
	})
	if s.pinned == "" {
		s.pinned = wire.Legacy
	}
	return s
}

func newHTTP(endpoint string, options *HTTPOptions, transportOver func(t *roundTripper, limit int) mcp.Transport) *source {
	var o HTTPOptions
	if options != nil {
		o = *options
		o.Headers, o.TrustedHeaders = maps.Clone(o.Headers), maps.Clone(o.TrustedHeaders)
	}
	origin, err := parseEndpoint(endpoint)
	name := "server"
	if err == nil {
		name = origin.Host
	}
	s := &source{options: o.withDefaults(name), pinned: o.Protocol}
	s.dial = func(context.Context) (link, error) {
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", s.options.Server, err)
		}
		t := newRoundTripper(origin, &o, s.options.MaxMessage)
		return &httpLink{roundTripper: t, transport: transportOver(t, s.options.MaxMessage)}, nil
	}
	return s
}

// parseEndpoint does not put the URL into its errors: it may hold a secret.
func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, errors.New("its URL cannot be read: it should look like https://host/mcp")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("its URL should begin with http:// or https:// and a host")
	}
	return u, nil
}

// httpLink is a connection over streamable HTTP, or over HTTP with SSE.
type httpLink struct {
	roundTripper *roundTripper
	transport    mcp.Transport

	mu     sync.Mutex // kill may be called before Connect has returned
	killed bool
	conn   *httpConnection // set by Connect; nil with SSE
}

// Connect implements mcp.Transport. With SSE, the SDK binds the stream to the context
// that it is given, so that context must not end before the link does.
func (l *httpLink) Connect(ctx context.Context) (mcp.Connection, error) {
	if l.roundTripper.apart {
		inner, err := l.transport.Connect(context.WithoutCancel(ctx))
		return &sseConnection{inner}, err
	}
	inner, err := l.transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		_ = inner.Close()
		return nil, errClosed
	}
	l.conn = newHTTPConnection(inner, l.roundTripper)
	return l.conn, nil
}

func (l *httpLink) lost() <-chan struct{}     { return nil }
func (l *httpLink) err() error                { return l.roundTripper.err() }
func (l *httpLink) needs() []string           { return l.roundTripper.needs() }
func (l *httpLink) negotiated(version string) { l.roundTripper.negotiated(version) }

// Route implements [Routed].
func (l *httpLink) Route() telemetry.Peer { return l.roundTripper.route() }

// listen opens the stream for messages that a server of the older protocols sends on
// its own, and waits for it: until the stream is open, a server may drop such messages,
// including questions to the client. SSE has no such stream.
func (l *httpLink) listen(ctx context.Context, missed func(), failIdle func(error) bool) {
	if l.conn == nil {
		return
	}
	tried, late := make(chan struct{}), time.Now().Add(streamWait)
	l.conn.streams.Go(func() { l.conn.listen(late, sync.OnceFunc(func() { close(tried) }), missed, failIdle) })
	waitFor(ctx, tried)
}

func (l *httpLink) close(context.Context) error {
	if !l.end() {
		return fmt.Errorf("%s: the program's Token, OAuth handler or Client is still running %s after its context ended", l.roundTripper.origin.Host, wire.EndTimeout)
	}
	return nil
}

func (l *httpLink) kill() { l.end() }

// end ends the link, and reports whether its streams ended.
func (l *httpLink) end() bool {
	l.roundTripper.kill()
	l.mu.Lock()
	l.killed = true
	conn := l.conn
	l.mu.Unlock()
	ended := true
	if conn != nil {
		conn.stop()
		ended = returnsSoon(conn.streams.Wait)
	}
	l.roundTripper.drain()
	return ended
}

// sseConnection is a connection over HTTP with SSE. The end of its stream ends it. A message
// that could not be sent fails alone (MCP 2024-11-05, basic/transports § HTTP with SSE: each is
// a request of its own), where the SDK would send no more messages.
type sseConnection struct{ mcp.Connection }

// Write implements mcp.Connection.
func (c *sseConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	if err := c.Connection.Write(ctx, message); err != nil {
		return fmt.Errorf("%w: %w", errRejected, err)
	}
	return nil
}

// errRejected is, by its code, the SDK's error for a message that could not be sent on a
// connection that goes on.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// httpConnection adds the standalone stream for server messages to the SDK's
// connection. The SDK would open that stream with a context that never ends and wait
// for it (E12 of the field notes), and would not open it at all for a wrapped
// connection.
type httpConnection struct {
	mcp.Connection
	roundTripper *roundTripper
	messages     chan jsonrpc.Message
	streams      sync.WaitGroup

	ctx  context.Context // ends with the connection
	stop context.CancelFunc

	failing sync.Once
	failed  chan struct{}
	failure error // set before failed is closed
}

func newHTTPConnection(inner mcp.Connection, t *roundTripper) *httpConnection {
	c := &httpConnection{
		Connection:   inner,
		roundTripper: t,
		messages:     make(chan jsonrpc.Message),
		failed:       make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancel(t.life)
	c.streams.Go(c.pump)
	return c
}

// pump passes the messages of the SDK's connection to Read.
func (c *httpConnection) pump() {
	for {
		message, err := c.Connection.Read(c.ctx)
		if err != nil {
			c.fail(c.discreet(err))
			return
		}
		if !c.pass(message) {
			return
		}
	}
}

// pass hands a message to Read; it returns false if the connection has stopped.
func (c *httpConnection) pass(message jsonrpc.Message) bool {
	select {
	case c.messages <- message:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *httpConnection) fail(err error) {
	c.failing.Do(func() {
		c.failure = err
		close(c.failed)
	})
}

// Write implements mcp.Connection.
func (c *httpConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	return c.discreet(c.Connection.Write(ctx, message))
}

// discreet removes the URL and the session ID from an error that has them only in its
// text. The SDK returns such errors for streams that could not be resumed.
func (c *httpConnection) discreet(err error) error {
	var typed *url.Error // cleaned removes its URL
	if err == nil || errors.As(err, &typed) {
		return err
	}
	clean := redact.Sent(c.roundTripper.origin.String(), c.roundTripper.origin.RawQuery, c.SessionID())
	if text := clean(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// Read implements mcp.Connection.
func (c *httpConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-c.messages:
		return message, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.failed:
		return nil, c.failure
	case <-c.ctx.Done():
		return nil, errClosed
	}
}

// Close implements mcp.Connection: it ends the session on the server.
func (c *httpConnection) Close() error {
	c.stop()
	return c.Connection.Close()
}
