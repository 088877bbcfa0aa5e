// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bothGrace is how long a server that has answered initialize may take to answer
// server/discover, which it got before: servers may answer side by side.
const bothGrace = 250 * time.Millisecond

// errNoDiscover is what the SDK gets to see when server/discover is not answered.
var errNoDiscover = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server does not answer server/discover"}

// negotiation lets the SDK's handshake ask a silent server in both ways over one
// connection, on which messages arrive in their order. A server that is slow to
// start finds both questions when it reads, and one that ignores server/discover
// finds initialize: neither is started again.
//
// The SDK asks server/discover and waits. After a time without an answer the
// negotiation sends initialize by itself. If only that is answered, it fails the
// SDK's server/discover, and answers the initialize that the SDK sends then with
// the answer that is there.
type negotiation struct {
	mcp.Connection
	silence time.Duration    // before initialize is sent
	early   *jsonrpc.Request // the initialize that is sent after it
	ctx     context.Context  // of the attempt to connect

	read   chan reading         // holds what the connection returned, while reads is true
	reads  bool                 // used by Read alone
	insert chan jsonrpc.Message // answers that Read returns in the server's place

	mu       sync.Mutex
	timer    *time.Timer       // runs while something is to be done after a while
	discover jsonrpc.ID        // of the SDK's server/discover that is not answered
	failed   jsonrpc.ID        // of one that was failed, whose answer is dropped
	sent     bool              // early was
	answer   *jsonrpc.Response // to early
	waiting  jsonrpc.ID        // of the SDK's initialize, if it waits for that answer
}

// reading is what a Read of the connection below returned.
type reading struct {
	message jsonrpc.Message
	err     error
}

// negotiate returns inner with a negotiation; the caller must call its end.
func negotiate(ctx context.Context, inner mcp.Connection, early *jsonrpc.Request, silence time.Duration) *negotiation {
	return &negotiation{
		Connection: inner, silence: silence, early: early, ctx: ctx,
		read: make(chan reading, 1), insert: make(chan jsonrpc.Message, 2),
	}
}

// end stops what waits for its time. Messages still pass.
func (n *negotiation) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
	n.sent = true // nothing is sent any more
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

// takes looks at a request of the SDK, and reports whether it is not to be sent.
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

// askBoth sends initialize, because server/discover is not answered.
func (n *negotiation) askBoth() {
	n.mu.Lock()
	if n.sent || !n.discover.IsValid() {
		n.mu.Unlock()
		return
	}
	n.sent = true
	n.mu.Unlock()
	ctx := context.WithValue(n.ctx, outgoingKey{}, outgoing{method: n.early.Method, id: n.early.ID})
	_ = n.Connection.Write(ctx, n.early) // a failure shows when the connection is read
}

// taken is the answer to initialize under the ID of the SDK's; n.mu is held.
func (n *negotiation) taken() *jsonrpc.Response {
	answer := *n.answer
	answer.ID = n.waiting
	n.waiting = jsonrpc.ID{}
	return &answer
}

// giveUpDiscover fails the SDK's server/discover.
func (n *negotiation) giveUpDiscover() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.discover.IsValid() {
		n.failed, n.discover = n.discover, jsonrpc.ID{}
		n.insert <- &jsonrpc.Response{ID: n.failed, Error: errNoDiscover}
	}
}

// Read implements mcp.Connection. It is called by one goroutine at a time.
func (n *negotiation) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
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

// seen returns what the SDK gets to see of a message; nil for nothing.
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
		n.stop()
		n.discover = jsonrpc.ID{}
	case response.ID == n.failed:
		return nil // too late
	case response.ID == n.early.ID:
		n.stop()
		n.answer = response
		if n.waiting.IsValid() {
			return n.taken()
		}
		if wait := bothGrace; n.discover.IsValid() {
			if response.Error != nil {
				wait = n.silence // it may know the newest protocol only, and be slow
			}
			n.timer = time.AfterFunc(wait, n.giveUpDiscover)
		}
		return nil
	}
	return message
}

// greeting returns the request with which the SDK begins to speak an older
// protocol, under an ID that the SDK does not use.
func (c *connection) greeting(ctx context.Context) (*jsonrpc.Request, error) {
	said := &overheard{over: make(chan struct{})}
	_, err := c.client().Connect(ctx, said, &mcp.ClientSessionOptions{ProtocolVersion: legacy})
	if said.first == nil {
		return nil, err
	}
	id, err := jsonrpc.MakeID("consort-initialize")
	return &jsonrpc.Request{ID: id, Method: said.first.Method, Params: said.first.Params}, err
}

// overheard is a transport to nowhere that keeps the first request.
type overheard struct {
	first *jsonrpc.Request
	once  sync.Once
	over  chan struct{}
}

func (o *overheard) Connect(context.Context) (mcp.Connection, error) { return o, nil }
func (o *overheard) SessionID() string                               { return "" }

func (o *overheard) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-o.over:
	case <-ctx.Done():
	}
	return nil, io.EOF
}

func (o *overheard) Write(_ context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && o.first == nil {
		o.first = request
	}
	return errors.New("overheard")
}

func (o *overheard) Close() error {
	o.once.Do(func() { close(o.over) })
	return nil
}
