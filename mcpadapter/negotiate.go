// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/handshake"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errNoDiscover is passed to the SDK when server/discover is not answered.
var errNoDiscover = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server does not answer server/discover"}

// negotiation lets the SDK's handshake try both generations of the protocol on one
// connection on which messages arrive in order. A server that is slow to start finds
// both requests when it reads, and a server that ignores server/discover finds
// initialize; neither is started again.
//
// The SDK sends server/discover and waits. When the server has read it, as far as that
// can be determined, and has not answered for a while, the negotiation sends initialize
// itself. A server that accepts both then speaks the older protocol, whatever it
// answered before, because initialize came last. So if initialize succeeds, the
// negotiation fails the SDK's server/discover, and answers the initialize that the SDK
// sends next with the answer that it already has. A server that refuses initialize
// speaks the newest protocol.
type negotiation struct {
	mcp.Connection
	silence time.Duration    // how long to wait before sending initialize
	early   *jsonrpc.Request // the initialize that the negotiation sends
	ctx     context.Context  // ends with the attempt to connect
	// unread returns the number of bytes that the server has not read, if it is known.
	unread func() (count int, known bool)

	read   chan reading         // results of the Read that runs while reads is true
	reads  bool                 // used only by Read
	over   atomic.Bool          // set by end
	insert chan jsonrpc.Message // answers that Read returns instead of the server's

	mu       sync.Mutex
	timer    *time.Timer       // calls askBoth, or gives up waiting
	discover jsonrpc.ID        // ID of the SDK's unanswered server/discover
	failed   jsonrpc.ID        // ID of a server/discover that was failed; its answer is dropped
	held     *jsonrpc.Response // answer to server/discover, held until initialize is answered
	newer    bool              // server/discover succeeded
	behind   bool              // the server had not read everything when askBoth ran last
	sent     bool              // initialize was sent
	answer   *jsonrpc.Response // the answer to early
	waiting  jsonrpc.ID        // ID of the SDK's initialize, while it waits for answer
}

// reading is the result of one Read of the underlying connection.
type reading struct {
	message jsonrpc.Message
	err     error
}

// counter is a link that may know how many bytes the server has not read.
type counter interface {
	unread() (count int, known bool)
}

var _ counter = (*stdioLink)(nil)

// negotiate prepares a negotiation for the handshake; the caller must call its end
// method.
func (c *connection) negotiate(ctx context.Context, silence time.Duration) error {
	early, err := handshake.Initialize(ctx, c.questions.client(), wire.Legacy)
	if err != nil {
		return err
	}
	c.asking = &negotiation{
		silence: silence, early: early, ctx: ctx,
		unread: func() (int, bool) { return 0, false },
		read:   make(chan reading, 1), insert: make(chan jsonrpc.Message, 2),
	}
	if p, ok := c.link.(counter); ok {
		c.asking.unread = p.unread
	}
	c.interceptor.wrap = func(inner mcp.Connection) mcp.Connection {
		c.asking.Connection = inner
		return c.asking
	}
	return nil
}

// end stops the timer and prevents further requests. Messages still pass.
func (n *negotiation) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
	n.sent = true // prevents sending initialize
	n.over.Store(true)
}

// stop stops the timer; n.mu is held.
func (n *negotiation) stop() {
	if n.timer != nil {
		n.timer.Stop()
	}
}

// Write implements mcp.Connection.
func (n *negotiation) Write(ctx context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && n.takes(request) {
		return nil
	}
	return n.Connection.Write(ctx, message)
}

// takes handles a request of the SDK and reports whether it must not be sent.
func (n *negotiation) takes(request *jsonrpc.Request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch request.Method {
	case "server/discover":
		if !request.ID.IsValid() || n.sent {
			return false
		}
		n.stop()
		n.discover = request.ID
		n.timer = time.AfterFunc(n.silence, n.askBoth)
	case "initialize":
		n.stop()
		if !n.sent {
			n.sent = true // by the SDK
			return false
		}
		if n.waiting = request.ID; n.answer != nil {
			n.insert <- n.taken()
		}
		return true
	}
	return false
}

// askBoth sends initialize because server/discover was not answered. If the server has
// not read everything yet, or has only just done so, it waits longer.
func (n *negotiation) askBoth() {
	n.mu.Lock()
	if n.sent || !n.discover.IsValid() {
		n.mu.Unlock()
		return
	}
	count, known := n.unread()
	behind := known && count > 0
	if behind || n.behind {
		n.behind = behind
		n.timer.Reset(n.silence / 4)
		n.mu.Unlock()
		return
	}
	n.sent = true
	n.mu.Unlock()
	ctx := context.WithValue(n.ctx, outgoingKey{}, outgoing{method: n.early.Method, id: n.early.ID})
	_ = n.Connection.Write(ctx, n.early) // Read returns the failure
}

// taken returns the answer to early with the ID of the SDK's initialize; n.mu is held.
func (n *negotiation) taken() *jsonrpc.Response {
	answer := *n.answer
	answer.ID = n.waiting
	n.waiting = jsonrpc.ID{}
	return &answer
}

// wait bounds the wait for the answer to initialize or server/discover to silence; n.mu
// is held.
func (n *negotiation) wait() {
	n.stop()
	n.timer = time.AfterFunc(n.silence, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.held != nil || n.discover.IsValid() {
			n.insert <- n.discovered()
		}
	})
}

// discovered returns the answer to server/discover that the SDK gets when the wait is
// over; n.mu is held.
func (n *negotiation) discovered() *jsonrpc.Response {
	n.stop()
	answer, id := n.held, n.discover
	n.held, n.discover = nil, jsonrpc.ID{}
	if answer != nil && (n.answer == nil || n.answer.Error != nil) {
		return answer
	}
	if answer == nil {
		n.failed = id
	} else {
		id = answer.ID
	}
	return &jsonrpc.Response{ID: id, Error: errNoDiscover}
}

// Read implements mcp.Connection. It is called by one goroutine at a time.
func (n *negotiation) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if !n.reads && n.over.Load() { // nothing is inserted any more
			message, err := n.Connection.Read(ctx)
			if err != nil {
				return nil, err
			}
			if message = n.seen(message); message != nil {
				return message, nil
			}
			continue
		}
		if !n.reads {
			n.reads = true
			go func() { // ends with the connection
				message, err := n.Connection.Read(ctx)
				n.read <- reading{message, err}
			}()
		}
		select {
		case message := <-n.insert:
			return message, nil
		case got := <-n.read:
			n.reads = false
			if got.err != nil {
				return nil, got.err
			}
			if message := n.seen(got.message); message != nil {
				return message, nil
			}
		}
	}
}

// seen returns the message to pass to the SDK, or nil for none.
func (n *negotiation) seen(message jsonrpc.Message) jsonrpc.Message {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return message
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !response.ID.IsValid():
	case response.ID == n.discover:
		return n.discoverAnswered(response)
	case response.ID == n.failed:
		n.newer = response.Error == nil
		return nil // too late
	case response.ID == n.early.ID:
		return n.initializeAnswered(response)
	}
	return message
}

// discoverAnswered handles the answer to server/discover; n.mu is held.
func (n *negotiation) discoverAnswered(response *jsonrpc.Response) jsonrpc.Message {
	n.stop()
	n.discover = jsonrpc.ID{}
	n.newer = response.Error == nil
	if n.newer && n.sent && n.answer == nil {
		n.held = response
		n.wait()
		return nil
	}
	return response
}

// initializeAnswered handles the answer to early; n.mu is held.
func (n *negotiation) initializeAnswered(response *jsonrpc.Response) jsonrpc.Message {
	n.answer = response
	switch {
	case n.waiting.IsValid():
		return n.taken()
	case n.held != nil, n.discover.IsValid() && response.Error == nil:
		return n.discovered()
	case n.discover.IsValid():
		n.wait() // the server may support only the newest protocol, and answer server/discover later
	}
	return nil
}

// knowsNewest reports whether the server supports the newest protocol, even if an older
// one was negotiated.
func (n *negotiation) knowsNewest() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.newer
}
