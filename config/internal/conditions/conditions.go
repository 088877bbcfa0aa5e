// SPDX-License-Identifier: Apache-2.0

// Package conditions has the conditions of rules about tools: globs for names, and hints.
package conditions

import (
	"slices"

	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/invoker"
)

// Conditions are common to the rules about invocations and about clients.
type Conditions struct {
	Ensembles, Tools                             []string
	ReadOnly, Idempotent, Destructive, OpenWorld *bool
}

func (c *Conditions) HasHints() bool {
	return c.ReadOnly != nil || c.Idempotent != nil || c.Destructive != nil || c.OpenWorld != nil
}

// Fit reports whether a tool meets the conditions.
func (c *Conditions) Fit(ensemble, tool string, hints invoker.Hints) bool {
	return Matches(c.Ensembles, ensemble) &&
		Matches(c.Tools, tool) &&
		agrees(c.ReadOnly, hints.ReadOnly) &&
		agrees(c.Idempotent, hints.Idempotent) &&
		agrees(c.Destructive, hints.MayDestroy()) &&
		agrees(c.OpenWorld, hints.OpenWorld == nil || *hints.OpenWorld)
}

// agrees reports whether a hint has the wanted value; any value will do if wanted is nil.
func agrees(wanted *bool, is bool) bool { return wanted == nil || *wanted == is }

// Matches reports whether one of the globs matches the name. No globs match every name.
func Matches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(pattern string) bool { return glob.Match(pattern, name) })
}
