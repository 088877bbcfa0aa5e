// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"
)

// Change is the difference between the tools on offer and those offered before. The
// names are the tools' own, sorted.
type Change struct {
	Time    time.Time // when the tools were listed
	Added   []string
	Removed []string
	Changed []string // offered before with another definition
}

// toolHistory is the newest offer of an ensemble, kept across connections. Ensemble.mu
// guards it.
type toolHistory struct {
	offer *offer // from the last listing
	known bool   // offer comes from a listing
	last  Change // see Snapshot.LastChange
}

// replace makes o the newest offer. It returns the change; false if nothing has changed
// or o is the first offer.
func (h *toolHistory) replace(o *offer) (Change, bool) {
	before, first := h.offer, !h.known
	h.offer, h.known = o, true
	if first || o == before {
		return Change{}, false
	}
	old := before.byOwnName()
	c := Change{Time: time.Now()}
	for _, t := range o.tools {
		name := t.definition.Name
		switch was, ok := old[name]; {
		case !ok:
			c.Added = append(c.Added, name)
		case was != t:
			c.Changed = append(c.Changed, name)
		}
		delete(old, name)
	}
	for name := range old {
		c.Removed = append(c.Removed, name)
	}
	if len(c.Added)+len(c.Removed)+len(c.Changed) == 0 {
		return Change{}, false
	}
	for _, names := range [][]string{c.Added, c.Removed, c.Changed} {
		slices.Sort(names)
	}
	h.last = c
	return c, true
}
