// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// Text describes a successful reload for people.
func (o *Outcome) Text() string {
	var b strings.Builder
	line := func(what string, names ...string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "  %-14s%s\n", what, display.Line(strings.Join(names, ", ")))
		}
	}
	line("added", o.Added...)
	line("removed", o.Removed...)
	line("changed", o.Changed...)
	for _, name := range slices.Sorted(maps.Keys(o.Away)) {
		line("away", name+": "+o.Away[name])
	}
	line("keys", o.Keys...)
	line("needs restart", o.NeedsRestart...)
	if b.Len() == 0 {
		return fmt.Sprintf("Process %d: nothing has changed.\n", o.Process)
	}
	return fmt.Sprintf("Process %d has the new configuration:\n%s", o.Process, &b)
}
