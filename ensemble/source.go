// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Source is what an [Ensemble] is made from: something that can be connected
// to, such as an MCP server or a group of local functions. Who writes one runs
// the suite of package ensembletest over it.
type Source interface {
	// Open makes one fresh connection; it never returns one that it returned
	// before. It returns soon after ctx ends, and leaves nothing behind when
	// it fails. The connection outlives ctx.
	Open(ctx context.Context) (Connection, error)
}

// Connection is one life of a source. All methods may be called concurrently;
// Lost, Err, Changed and Peer return at once. It may also be a [Pinger], an
// [Unreader] and a [Library], and count [Latecomers]. A method that panics fails by itself: the
// attempt to connect if it is List, Lost or Changed, and else what it was called
// for.
//
// A call of one of its invokers that fails because the connection ends, or has
// ended, is an [invoker.Failure] with the code OUTCOME_UNKNOWN, or UNAVAILABLE
// if it certainly was not made: such a call is made again over a fresh
// connection. So is one whose context the loss ended before it was sent: CANCELED,
// with the context's error as its cause, and Retryable. What the tool's hints say makes no difference to that; the
// ensemble knows how far to trust them, and repeats what may be repeated. A
// failure with content is the answer of the tool itself, whatever its code, and
// no call that was answered is made again.
// While a call waits for a person, its source calls [invoker.Call.Hold].
type Connection interface {
	// List asks for the tools that are offered now, all pages of them, in any
	// order. The invokers belong to this connection.
	List(ctx context.Context) (Listing, error)
	// Changed receives a value, some time after the tools that List would
	// return may have changed. Values may be merged. The channel is never
	// closed; it is nil when the tools never change. An ensemble asks for it once.
	Changed() <-chan struct{}
	// Lost is closed when the connection can serve no more calls, for whatever
	// reason, Close included. An ensemble asks for the channel once.
	Lost() <-chan struct{}
	// Err says why the connection was lost: nil before Lost is closed and
	// after Close has ended it.
	Err() error
	// Peer describes who is at the other end; its zero value is fine.
	Peer() Peer
	// Close ends the connection: calls in flight fail, and whatever the
	// connection started (goroutines, processes, sockets) is gone when it
	// returns. When ctx ends it stops being polite, not waiting. A second
	// call waits for the first and returns the same.
	Close(ctx context.Context) error
}

// Pinger is an ability that a [Connection] may have, for Options.KeepAlive.
type Pinger interface {
	// Ping asks the other end for a sign of life. Any answer is one, also an
	// error that the other end reports; Ping fails when there is none before
	// ctx ends. It returns soon after.
	Ping(ctx context.Context) error
}

// Unreader is an ability that a [Pinger] may have, for Options.KeepAlive.
type Unreader interface {
	// Unread returns for how long the other end has read nothing although
	// something was sent to it, if it has answered every request that it has read
	// and that is still waited for: then it is not at work on one. 0 means that it
	// reads, may be at work, or that this is not known. It returns at once. That
	// the other end has read may be noticed only when Unread is called.
	Unread() time.Duration
}

// Latecomers is an ability that a [Connection] may have, for Snapshot.Late.
type Latecomers interface {
	// Late counts the answers that came after the invoker that had waited for
	// them returned, and were dropped. It returns at once.
	Late() int
}

// Listing is what a connection offers.
type Listing struct {
	Invokers []invoker.Invoker
	// Aside are tools that the source cannot offer.
	Aside []Aside
}

// Aside is a tool that is not offered, and why; or a resource, template or
// prompt.
type Aside struct {
	Ensemble string // filled in by the Ensemble
	Tool     string // the tool's own name, or the prompt's, or a URI
	Reason   string // a clause that reads well after "set aside: "
}

// Peer describes who is at the other end of a connection.
type Peer struct {
	Name         string // what the server calls itself
	Title        string
	Version      string // of the server
	Protocol     string // and its version, such as "MCP 2025-11-25"
	Instructions string // what the server says about its use
	Description  string // of the server, for people
	Website      string // a URL; for people
	// Metadata is for programs, as mcp/icons. May be nil.
	Metadata canister.Fields
}
