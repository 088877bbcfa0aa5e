// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"
	"slices"

	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/urirules"
	"github.com/consort-go/consort/invoker"
)

// excluded returns why Allow and Deny exclude the name of a tool or prompt, the URI of a
// resource or the text of a template; empty if they do not.
func (o *Options) excluded(name string) string {
	matches := func(pattern string) bool { return glob.Match(pattern, name) }
	if i := slices.IndexFunc(o.Deny, matches); i >= 0 {
		return fmt.Sprintf("the deny list has %q", o.Deny[i])
	}
	if len(o.Allow) > 0 && !slices.ContainsFunc(o.Allow, matches) {
		return "it is not in the allow list"
	}
	return ""
}

// mayUse returns a check for a request: it returns NOT_FOUND for an ensemble whose Allow and
// Deny exclude an item; nil for others.
func mayUse(what, name string) func(*Ensemble) error {
	return func(e *Ensemble) error {
		if e.options.excluded(name) == "" {
			return nil
		}
		return invoker.Failf(invoker.NotFound, "%q does not offer the %s %q.", e.name, what, shortened(name))
	}
}

// mayReach is mayUse for a URI, in all spellings that a server may read.
func mayReach(uri string) func(*Ensemble) error {
	return func(e *Ensemble) error {
		if o := &e.options; len(o.Allow)+len(o.Deny) > 0 && urirules.Excluded(uri, o.Allow, o.Deny) {
			return invoker.Failf(invoker.NotFound, "%q does not offer the resource %q.", e.name, shortened(uri))
		}
		return nil
	}
}
