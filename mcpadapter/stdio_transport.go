// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioLink is the link to a subprocess. It replaces mcp.CommandTransport, which cannot
// keep the promises of this package: with it, one stray line ends the session, a server
// that stops reading blocks a call beyond its context, and children of wrappers are left
// running.
//
// The SDK closes the connection while it holds its own lock, and after any failure; that
// starts the shutdown without waiting for it. Only close and kill wait, and one of them
// must be called in every case.
type stdioLink struct {
	process    *subprocess.Process
	name       string               // of the server
	maxMessage int                  // bounds one message, in bytes
	connected  chan struct{}        // holds a value once Connect was called
	messages   chan jsonrpc.Message // from read to Read
}

// startProcess starts a process and returns the link to it. The process outlives ctx.
// After an error, nothing is left running or open.
func startProcess(ctx context.Context, command subprocess.Command, maxMessage int) (*stdioLink, error) {
	l := &stdioLink{
		name: command.Name, maxMessage: maxMessage,
		connected: make(chan struct{}, 1), messages: make(chan jsonrpc.Message),
	}
	command.Output = l.read
	var err error
	l.process, err = command.Start(ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *stdioLink) lost() <-chan struct{}           { return l.process.Lost() }
func (l *stdioLink) err() error                      { return l.process.Err() }
func (l *stdioLink) close(ctx context.Context) error { return l.process.Close(ctx) }
func (l *stdioLink) kill()                           { l.process.Kill() }
func (l *stdioLink) unread() (count int, known bool) { return l.process.Unread() }

// Connect implements mcp.Transport. It may be called once.
func (l *stdioLink) Connect(context.Context) (mcp.Connection, error) {
	select {
	case l.connected <- struct{}{}:
		return stdioConnection{l}, nil
	default:
		return nil, fmt.Errorf("server %q: a process accepts only one connection; start another process", l.name)
	}
}

// insert makes Read return a message as if the server had sent it.
func (l *stdioLink) insert(message jsonrpc.Message) {
	go func() {
		select {
		case l.messages <- message:
		case <-l.lost():
		}
	}()
}

// stdioConnection is the mcp.Connection to a process.
type stdioConnection struct{ link *stdioLink }

// SessionID implements mcp.Connection: stdio has no session IDs.
func (stdioConnection) SessionID() string { return "" }

// Close implements mcp.Connection: it starts the shutdown and does not wait for it.
func (c stdioConnection) Close() error {
	c.link.process.Stop()
	return nil
}

// Read returns the server's next message. Lines that are not messages are skipped.
func (c stdioConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.link.messages:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.link.lost():
		if err := c.link.err(); err != nil {
			return nil, err
		}
		return nil, io.EOF // which the SDK treats as an orderly end
	}
}

// Write sends one message. If it is interrupted after part of the message was sent, the
// connection is lost; if no byte was sent, the error wraps subprocess.ErrNotSent, and the
// call may be repeated.
func (c stdioConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := wire.Line(msg)
	if err != nil {
		return err
	}
	end, err := c.link.process.Write(ctx, line)
	request, ok := msg.(*jsonrpc.Request)
	switch x := exchangeFrom(ctx); {
	case err == nil && x != nil && ok && request.IsCall():
		x.end.Store(end)
	case errors.Is(err, subprocess.ErrClosed) && errors.Is(err, subprocess.ErrNotSent):
		return subprocess.NotSent(mcp.ErrConnectionClosed)
	case errors.Is(err, subprocess.ErrClosed):
		return mcp.ErrConnectionClosed
	}
	return err
}
