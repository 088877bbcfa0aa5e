// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// process replaces mcp.CommandTransport, which cannot keep the promises of this
// package: with it, one stray line ends the session, a server that stops reading blocks
// a call beyond its context, and children of wrappers are left running.
//
//	p, err := command{name: "files", argv: argv, env: safeEnv(given), …}.start(ctx)
//	if err != nil { return err }                       // nothing is left running
//	stop := context.AfterFunc(ctx, p.kill)             // bounds Connect to a hung server
//	session, err := client.Connect(ctx, p, options)    // p is the mcp.Transport, for one use
//	if !stop() || err != nil {
//		p.kill()                                       // waits; nothing is left running
//		return cmp.Or(p.err(), err)                    // p.err reports an exit, with stderr
//	}
//	…
//	<-p.lost()                                         // closed when it exits; p.err() says why
//	…
//	err = p.close(ctx)                                 // first: ends the server and fails its calls
//	_ = session.Close()                                // then: has nothing to wait for
//
// The SDK closes the connection while it holds its own lock, and after any failure;
// that starts the shutdown without waiting for it. Only close and kill wait, and one of
// them must be called in every case. A failed Write returns errNotSent if no byte
// reached the server; its call may then be repeated.
var _ mcp.Transport = (*process)(nil)

// bounded returns a context for a write. It ends after maxStall if ctx has no deadline.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wire.StallTimeout)
}

// Connect implements mcp.Transport. It may be called once.
func (p *process) Connect(context.Context) (mcp.Connection, error) {
	select {
	case p.connected <- struct{}{}:
		return stdioConnection{p}, nil
	default:
		return nil, fmt.Errorf("server %q: a process can be connected to once; start another", p.name)
	}
}

// stdioConnection is the mcp.Connection to a process.
type stdioConnection struct{ p *process }

// SessionID implements mcp.Connection: stdio has no session IDs.
func (stdioConnection) SessionID() string { return "" }

// Close implements mcp.Connection: it starts the shutdown and does not wait for it.
func (c stdioConnection) Close() error {
	c.p.stop()
	return nil
}

// Read returns the server's next message. Lines that are not messages are skipped.
func (c stdioConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.p.messages:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.p.lostCh:
		if c.p.lostErr != nil {
			return nil, c.p.lostErr
		}
		return nil, io.EOF // which the SDK treats as an orderly end
	}
}

// Write sends one message. If it is interrupted after part of the message was sent, the
// connection is lost; if no byte was sent, the error is errNotSent.
func (c stdioConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	limited, cancel := bounded(ctx)
	defer cancel()
	request, ok := msg.(*jsonrpc.Request)
	n, err := c.p.send(limited, append(data, '\n'), ok && request.IsCall())
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil:
		return notSent(ctx.Err())
	case limited.Err() != nil:
		c.p.breakOff(errNotReading)
	default:
		c.p.breakOff(errStdinClosed)
	}
	select {
	case <-c.p.lostCh: // closed soon; then it is known whether the process exited
		err = c.p.sendError()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if n == 0 {
		return notSent(err)
	}
	return err
}

// send waits for its turn and writes data, until ctx ends. call says whether data is a
// request that expects an answer. It returns how many bytes were written.
func (p *process) send(ctx context.Context, data []byte, call bool) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case p.writing <- struct{}{}:
		n, err := p.writeUntil(ctx, data)
		if x := exchangeFrom(ctx); err == nil && x != nil && call {
			x.end.Store(p.intake.position())
		}
		if err == nil || n == 0 {
			<-p.writing
		} // otherwise nothing may follow a partial message
		return n, err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-p.lostCh:
		return 0, p.sendError()
	}
}

// writeUntil writes data to the server until ctx ends. Where pipes do not support
// deadlines (Windows), it kills the server to interrupt the write.
func (p *process) writeUntil(ctx context.Context, data []byte) (int, error) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		if p.stdin.SetWriteDeadline(time.Unix(1, 0)) != nil {
			p.breakOff(errNotReading)
			p.killGroup()
		}
	})
	n, err := p.writePieces(data)
	if !stop() {
		<-interrupted
		_ = p.stdin.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// breakOff tells supervise that nothing more can be sent.
func (p *process) breakOff(reason error) {
	select {
	case p.broken <- reason:
	default: // a reason was already given
	}
}

// sendError returns the error of sending to a lost connection.
func (p *process) sendError() error {
	if p.lostErr != nil {
		return p.lostErr
	}
	return mcp.ErrConnectionClosed
}
