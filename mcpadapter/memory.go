// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"net"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// InMemory returns the source of a server of the SDK in this program. Each connection
// is a new session of that server.
func InMemory(server *mcp.Server, options *ClientOptions) ensemble.Source {
	s := &source{options: options.withDefaults("in-memory server"), inOrder: true}
	s.pinned = s.options.Protocol
	limit := s.options.MaxMessage
	s.dial = func(ctx context.Context) (link, error) { return dialMemory(ctx, server, limit) }
	return s
}

// memoryLink is a pipe to a server in this program.
type memoryLink struct {
	ours, theirs net.Conn
	limit        int
	session      *mcp.ServerSession
	ended        chan struct{} // closed when the session has ended
}

func dialMemory(ctx context.Context, server *mcp.Server, limit int) (link, error) {
	l := &memoryLink{limit: limit, ended: make(chan struct{})}
	l.ours, l.theirs = net.Pipe()
	// The server's side outlives ctx.
	session, err := server.Connect(context.WithoutCancel(ctx), &mcp.IOTransport{Reader: l.theirs, Writer: l.theirs, MaxLineLength: limit}, nil)
	if err != nil {
		l.ours.Close()
		l.theirs.Close()
		return nil, err
	}
	l.session = session
	go func() {
		defer close(l.ended)
		_ = session.Wait()
	}()
	return l, nil
}

// Connect implements mcp.Transport.
func (l *memoryLink) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := (&mcp.IOTransport{Reader: l.ours, Writer: l.ours, MaxLineLength: l.limit}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &memoryConnection{Connection: inner}, nil
}

func (l *memoryLink) lost() <-chan struct{} { return nil }
func (l *memoryLink) err() error            { return nil }

// close waits until the server's handlers, whose contexts have ended, return.
func (l *memoryLink) close(ctx context.Context) error {
	l.ours.Close()
	select {
	case <-l.ended:
	case <-time.After(wire.EndTimeout):
	case <-ctx.Done():
	}
	l.theirs.Close()
	return nil
}

func (l *memoryLink) kill() {
	l.ours.Close()
	l.theirs.Close()
	select {
	case <-l.ended:
	case <-time.After(wire.EndTimeout):
	}
}

// memoryConnection fails a write if the server does not read the message before the
// context ends, or within [wire.StallTimeout]. The SDK's own connection ignores the context when
// it writes.
type memoryConnection struct{ mcp.Connection }

func (c *memoryConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	written := make(chan struct{})
	defer close(written)
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-written:
		case <-time.After(wire.EndTimeout):
			_ = c.Connection.Close()
		}
	})
	defer stop()
	return c.Connection.Write(ctx, message)
}

// bounded returns a context for a write. It ends after wire.StallTimeout if ctx has no
// deadline.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wire.StallTimeout)
}
