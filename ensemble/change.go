// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"

	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// Change is the difference between the tools on offer and those offered before. The
// names are the tools' own, sorted.
type Change struct {
	Time    time.Time // when the tools were listed
	Added   []string
	Removed []string
	Changed []string // offered before with another definition
}

// take makes o the offer of the ensemble and records the change; e.mu is held.
func (e *Ensemble) take(o *offer) {
	before := e.offer
	e.offer = o
	first := !e.listed
	e.listed = true
	if first || o == before {
		return
	}
	old := make(map[string]*Tool, len(before.tools))
	for _, t := range before.tools {
		old[t.definition.Name] = t
	}
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
		return
	}
	for _, names := range [][]string{c.Added, c.Removed, c.Changed} {
		slices.Sort(names)
	}
	e.lastChange = c
	e.news.tell(ToolsChanged)
	e.log.Info("the tools have changed", event.ToolsChanged, zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("changed", c.Changed))
}
