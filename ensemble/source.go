// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Source makes connections for an [Ensemble], for example to an MCP server or to a
// group of local functions. Authors of a source should run the test suite of package
// ensembletest on it.
type Source interface {
	// Open makes one fresh connection; it never returns the same connection twice. It
	// returns soon after ctx ends, and leaves nothing behind when it fails. The
	// connection outlives ctx.
	Open(ctx context.Context) (Connection, error)
}

// Connection is one connection of a source. All methods may be called concurrently;
// Lost, Err, Changed and Peer return at once. It may also implement [Pinger],
// [Unreader], [Library] and [LateCounter]. A panic in a method fails the operation that
// called it: the attempt to connect if the method is List, Lost or Changed.
//
// A call of one of its invokers that fails because the connection ends, or has ended,
// returns an [invoker.Failure] with the code OUTCOME_UNKNOWN, or with UNAVAILABLE if it
// certainly was not made: such a call is made again over a fresh connection. The same
// happens to a call whose context was ended by the loss before it was sent: its failure
// is CANCELED and Retryable, with the context's error as its cause. These codes do not
// depend on the tool's hints; the ensemble knows how far to trust them, and decides
// whether to repeat a call. A failure with content is the answer of the tool itself,
// whatever its code, and a call that was answered is never made again.
//
// While a call waits for the user, its source calls [invoker.Call.Hold].
type Connection interface {
	// List asks for the current tools, all pages of them, in any order. The invokers
	// belong to this connection.
	List(ctx context.Context) (Listing, error)
	// Changed receives a value some time after the result of List may have changed.
	// Several changes may be merged into one value. The channel is never closed; it is
	// nil when the tools never change. An ensemble calls Changed once.
	Changed() <-chan struct{}
	// Lost is closed when the connection can serve no more calls, for any reason, Close
	// included. An ensemble calls Lost once.
	Lost() <-chan struct{}
	// Err returns why the connection was lost. It is nil before Lost is closed and
	// after Close has ended the connection.
	Err() error
	// Peer describes the other end; the zero value is valid.
	Peer() Peer
	// Close ends the connection: calls in flight fail, and everything that the
	// connection started (goroutines, processes, sockets) is gone when Close returns.
	// When ctx ends, Close forces the end, but still waits for it. A second call waits
	// for the first and returns the same error.
	Close(ctx context.Context) error
}

// Pinger is an optional interface of a [Connection], for Options.KeepAlive.
type Pinger interface {
	// Ping asks the other end for a sign of life. Any answer counts, including an error
	// that the other end reports. Ping fails if no answer comes before ctx ends, and
	// returns soon after that.
	Ping(ctx context.Context) error
}

// Unreader is an optional interface of a [Pinger], for Options.KeepAlive.
type Unreader interface {
	// Unread returns for how long the other end has read nothing although something was
	// sent to it, provided that no caller waits for a request that the other end has
	// read but not answered: then it is not working on one. Unread returns 0 if the
	// other end reads, if it may be working, or if this is not known. It returns at
	// once. An implementation may notice only during a call of Unread that the other
	// end has read.
	Unread() time.Duration
}

// LateCounter is an optional interface of a [Connection], for Snapshot.Late.
type LateCounter interface {
	// Late counts the answers that were dropped because the invoker that waited for
	// them had already returned. Late returns at once.
	Late() int
}

// Listing contains the tools of a connection.
type Listing struct {
	Invokers []invoker.Invoker
	// Aside are the tools that the source cannot offer.
	Aside []Aside
}

// Aside is a tool, resource, template or prompt that is not offered, with the reason.
type Aside struct {
	Ensemble string `json:"ensemble,omitempty"` // filled in by the Ensemble
	Tool     string `json:"tool"`               // the tool's own name, or the prompt's, or a URI
	Reason   string `json:"reason"`             // a clause that reads well after "set aside: "
}

// Peer describes the other end of a connection.
type Peer struct {
	Name         string // the server's name for itself
	Title        string
	Version      string // of the server
	Protocol     string // with its version, such as "MCP 2025-11-25"
	Instructions string // the server's advice about its use
	Description  string // of the server, for people
	Website      string // a URL; for people
	// Metadata is for programs, such as mcp/icons. May be nil.
	Metadata canister.Fields
}
