// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"slices"
	"time"
)

// Status is the part of the last row that does not come from the events of turns.
type Status struct {
	Model    string
	Currency string // of costs
	// Budget says how much may still be spent; empty if nothing bounds it.
	Budget string
	// Starting and Away are the servers that are being connected, and those that cannot be
	// reached.
	Starting, Away []string
}

func (s Status) equal(other Status) bool {
	return s.Model == other.Model && s.Currency == other.Currency && s.Budget == other.Budget &&
		slices.Equal(s.Starting, other.Starting) && slices.Equal(s.Away, other.Away)
}

// statusPace is how often the status is looked up.
const statusPace = 300 * time.Millisecond

// watchStatus passes on the status whenever it has changed.
func (u *UI) watchStatus() {
	ticker := time.NewTicker(statusPace)
	defer ticker.Stop()
	var last Status
	for {
		if now := u.options.Status(); !now.equal(last) {
			last = now
			u.backlog.put(now, 0)
		}
		select {
		case <-ticker.C:
		case <-u.over:
			return
		}
	}
}
