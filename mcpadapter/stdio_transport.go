// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A process stands where mcp.CommandTransport would, which cannot keep our
// promises: one stray line ends its session, a server that stops reading
// blocks a call past its context, children of wrappers stay.
//
//	p, err := command{name: "files", argv: argv, env: safeEnv(given), …}.start(ctx)
//	if err != nil { return err }                       // nothing is left behind
//	stop := context.AfterFunc(ctx, p.kill)             // a hung server ends Connect in time
//	session, err := client.Connect(ctx, p, options)    // p is the mcp.Transport, for one use
//	if !stop() || err != nil {
//		p.kill()                                       // waits; nothing is left behind
//		return cmp.Or(p.err(), err)                    // p.err tells of an exit, with stderr
//	}
//	…
//	<-p.lost()                                         // at once when it exits; p.err() says why
//	…
//	err = p.close(ctx)                                 // first: ends the server, and so fails the calls
//	_ = session.Close()                                // then: finds nothing to wait for
//
// The SDK closes the connection under its own lock, and on any failure; that
// begins the shutdown and does not wait for it. Only close and kill wait, and
// one of them must be called in every case. A failed Write of which no byte
// reached the server is errNotSent: its call may be made again.
var _ mcp.Transport = (*process)(nil)

// maxStall bounds a write whose context has no end, such as the answer to a
// server's request, and what a server writes to its client over a stream.
const maxStall = time.Minute

// bounded returns a context for a write, which ends after maxStall if ctx has no
// deadline.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, maxStall)
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

// stdioConnection is what the SDK sees of a process.
type stdioConnection struct{ p *process }

// SessionID implements mcp.Connection: stdio has none.
func (stdioConnection) SessionID() string { return "" }

// Close implements mcp.Connection: it begins the end and does not wait for it.
func (c stdioConnection) Close() error {
	c.p.stop()
	return nil
}

// Read returns the server's next message. Lines that are none were skipped.
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
		return nil, io.EOF // what the SDK takes for an orderly end
	}
}

// Write sends one message, or nothing, which is errNotSent: when it is
// interrupted in between, the connection is lost.
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
	case <-c.p.lostCh: // soon, and then it is known whether it exited
		err = c.p.sendError()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if n == 0 {
		return notSent(err)
	}
	return err
}

// send writes data, which may be a call, when it is its turn, until ctx ends. It
// returns how much of it left.
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
		} // else nothing may follow the half of a message
		return n, err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-p.lostCh:
		return 0, p.sendError()
	}
}

// writeUntil writes data to the server until ctx ends. Where pipes know no
// deadline (Windows), the server is ended instead.
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

// breakOff tells the supervisor that nothing more can be sent.
func (p *process) breakOff(reason error) {
	select {
	case p.broken <- reason:
	default: // it knows
	}
}

// sendError is the failure of sending to a lost connection.
func (p *process) sendError() error {
	if p.lostErr != nil {
		return p.lostErr
	}
	return mcp.ErrConnectionClosed
}
