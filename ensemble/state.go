// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"
)

// State is the state of an ensemble.
//
//	          next use             opened and listed
//	Idle ----------------> Connecting ----------------> Ready
//	 ^                      ^      |                      |
//	 | Disconnect; or       |      | failed        ended  |
//	 | unused (from Ready)  |      v         by itself    |
//	        next use, retry +---- Lost <------------------+
//	                        |      |
//	                Connect |      | too often, see Restart
//	                        |      v
//	                        +--- Parked <-- Park (from any)
//
// An attempt, or a connection, that ends with [ErrNeedsLogin] leads to NeedsLogin in the
// place of Lost.
//
// Close leads from every state to Closed, which is final. From Connecting, an ensemble
// may go to Queued and back.
type State string

// The states.
const (
	// Idle: not connected, without an error; the next use connects. After
	// Options.IdleDisconnect, the cached lists are used while they are valid; a call, or any
	// other request, connects.
	Idle State = "idle"
	// Queued: an attempt waits until its process may start, because of Options.Starts.
	// Connecting follows.
	Queued State = "queued"
	// Connecting: an attempt is in progress.
	Connecting State = "connecting"
	// Ready: connected, and the tools are known.
	Ready State = "ready"
	// Lost: the connection ended by itself, or the last attempt failed;
	// Snapshot.LastError has the reason. The ensemble tries again by itself or when it is
	// next used: immediately after a loss, and some seconds after a failed attempt; see
	// [Ensemble.Connect].
	Lost State = "lost"
	// Parked: lost, and given up, or [Ensemble.Park] was called; Snapshot.LastError says
	// why. Nothing tries again but [Ensemble.Connect].
	Parked State = "parked"
	// NeedsLogin: lost, because a person must log in first; Snapshot.LastError says what
	// to do. The next use tries again at once. It is never parked for this reason.
	NeedsLogin State = "needs login"
	// Closed: final.
	Closed State = "closed"
)

// Snapshot describes an ensemble at one moment. Taking a snapshot never connects and
// never waits.
type Snapshot struct {
	Name  string
	State State
	Since time.Time // when State was entered
	// Peer is the current or last peer.
	Peer Peer
	// Tools is the number of tools on offer, from the last listing when the ensemble is
	// not ready.
	Tools int
	// Aside are the tools of that listing that are not offered, and Notes are remarks
	// about the tools on offer.
	Aside []Aside
	Notes []Note
	// LastChange is the difference between the newest listing that changed something
	// and the one before it; zero without such a listing.
	LastChange Change
	// LastError is the last error: a failed attempt to connect, a loss, a failed listing,
	// or why it is [Parked]. A later success does not clear it.
	LastError error
	// ConnectDuration is how long the last successful attempt took, including the
	// listing.
	ConnectDuration time.Duration
	// Restarts counts the connections that replaced a lost one.
	Restarts int
	// InFlight counts the running calls, Calls the calls that have ended, and Failures
	// those among Calls that failed, for any reason. A call without a connection is not
	// counted.
	InFlight, Calls, Failures int
	// Repeats counts how many times calls were made again; see [Tool.Invoke].
	Repeats int
	// Late counts the answers that arrived when no caller was waiting.
	Late int
	// LastSuccess is when a call, or an attempt to connect, last succeeded;
	// zero when none did.
	LastSuccess time.Time
	// Latency describes how long the newest calls took.
	Latency Latency
}

// Snapshot returns the current state of the ensemble.
func (e *Ensemble) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, offer := &e.supervisor, e.tools.offer
	n := e.stats.now()
	return Snapshot{
		Name: e.name, State: v.state, Since: v.since, Peer: v.peer,
		Tools: len(offer.tools), Aside: slices.Clone(offer.aside), Notes: slices.Clone(offer.notes),
		LastChange: e.tools.last, LastError: v.lastErr, ConnectDuration: v.took, Restarts: n.restarts,
		InFlight: n.inFlight, Calls: n.calls, Failures: n.failures, Repeats: n.repeats, Late: n.late + v.newest.late(),
		LastSuccess: n.success, Latency: e.stats.latency(),
	}
}
