// SPDX-License-Identifier: Apache-2.0

package ensemble

import "time"

// State is where an ensemble stands in its life.
//
//	          first use            opened and listed
//	Idle ----------------> Connecting ----------------> Ready
//	 ^                      ^      |                      |
//	 | Disconnect  next use |      | failed        ended  |
//	 | (from any)           |      v         by itself    |
//	 +----------------------+---- Lost <------------------+
//
// Close leads from every state to Closed, which is final.
type State string

// The states.
const (
	// Idle: not connected, and nothing is wrong; the next use connects.
	Idle State = "idle"
	// Connecting: an attempt is under way.
	Connecting State = "connecting"
	// Ready: connected, and the tools are known.
	Ready State = "ready"
	// Lost: the connection ended by itself, or the last attempt failed;
	// Snapshot.LastError says why. The next use tries again.
	Lost State = "lost"
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
	// Aside are the tools of that listing that are not offered.
	Aside []Aside
	// LastError is what went wrong last: a failed attempt to connect, a loss
	// or a failed listing. A later success does not clear it.
	LastError error
	// ConnectDuration is how long the last successful attempt took, the
	// listing included.
	ConnectDuration time.Duration
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
		Aside:           append([]Aside(nil), e.offer.aside...),
		LastError:       e.lastErr,
		ConnectDuration: e.connectDuration,
	}
}
