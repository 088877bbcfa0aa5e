// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"
)

// State is where an ensemble stands in its life.
//
//	          next use             opened and listed
//	Idle ----------------> Connecting ----------------> Ready
//	 ^                      ^      |                      |
//	 | Disconnect  next use |      | failed        ended  |
//	 | (from any); or retry |      v         by itself    |
//	 | unused (from Ready)  +---- Lost <------------------+
//	 |                      |      |
//	 |              Connect |      | too often, see Restart
//	 |                      |      v
//	 +----------------------+--- Parked
//
// Close leads from every state to Closed, which is final. From Connecting an
// ensemble may go to Queued and back.
type State string

// The states.
const (
	// Idle: not connected, and nothing is wrong; the next use connects. After
	// Options.IdleDisconnect only a call is such a use.
	Idle State = "idle"
	// Queued: an attempt waits until its process may start, because of
	// Options.Starts. Connecting follows.
	Queued State = "queued"
	// Connecting: an attempt is under way.
	Connecting State = "connecting"
	// Ready: connected, and the tools are known.
	Ready State = "ready"
	// Lost: the connection ended by itself, or the last attempt failed;
	// Snapshot.LastError says why. The next use tries again, or the ensemble
	// does by itself.
	Lost State = "lost"
	// Parked: lost, and given up; Snapshot.LastError says after how many
	// failures. No use tries again; [Ensemble.Connect] does, and
	// [Ensemble.Disconnect] makes it Idle.
	Parked State = "parked"
	// Closed: for good.
	Closed State = "closed"
)

// Snapshot is what was known of an ensemble at one moment. Taking one never
// connects and never waits.
type Snapshot struct {
	Name  string
	State State
	Since time.Time // when State was entered
	// Peer is who is, or last was, at the other end.
	Peer Peer
	// Tools counts the tools on offer; those of the last listing when the
	// ensemble is not ready.
	Tools int
	// Aside are the tools of that listing that are not offered, and Notes what
	// there is to know of those that are.
	Aside []Aside
	Notes []Note
	// LastChange is how the newest listing that differed from the one before
	// did; zero when there was none.
	LastChange Change
	// LastError is what went wrong last: a failed attempt to connect, a loss
	// or a failed listing. A later success does not clear it.
	LastError error
	// ConnectDuration is how long the last successful attempt took, the
	// listing included.
	ConnectDuration time.Duration
	// Restarts counts the connections that took the place of a lost one.
	Restarts int
	// InFlight counts the calls that run now, and Calls those that have ended;
	// Failures of these failed, in whatever way. A call for which there was no
	// connection counts nowhere.
	InFlight, Calls, Failures int
	// Repeats counts the times that a call was made again; see [Tool.Invoke].
	Repeats int
	// Late counts the answers that came when nobody waited any more.
	Late int
	// LastSuccess is when a call, or an attempt to connect, last succeeded;
	// zero when none did.
	LastSuccess time.Time
	// Latency is how long the newest calls took.
	Latency Latency
}

// Snapshot returns what is known of the ensemble now.
func (e *Ensemble) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Snapshot{
		Name:            e.name,
		State:           e.state,
		Since:           e.since,
		Peer:            e.peer,
		Tools:           len(e.offer.tools),
		Aside:           slices.Clone(e.offer.aside),
		Notes:           slices.Clone(e.offer.notes),
		LastChange:      e.lastChange,
		LastError:       e.lastErr,
		ConnectDuration: e.connectDuration,
		Restarts:        e.tally.restarts,
		InFlight:        e.tally.inFlight,
		Calls:           e.tally.calls,
		Failures:        e.tally.failures,
		Repeats:         e.tally.repeats,
		Late:            e.tally.late + e.last.late(),
		LastSuccess:     e.tally.success,
		Latency:         e.tally.latency(),
	}
}
