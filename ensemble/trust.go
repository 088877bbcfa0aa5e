// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"

	"github.com/consort-go/consort/internal/ownfunctions"
	"github.com/consort-go/consort/invoker"
)

// Trust determines which hints of its tools an ensemble believes. They decide whether a
// call can run without asking a person ([Tool.ReadOnly]), and whether a call is repeated
// that may or may not have taken effect. When the connection was lost, such a call is
// repeated once, immediately, and counted in Snapshot.Repeats; after other failures, the
// failure says that it is retryable. When the program died, a conversation makes a call
// again if its tool is read-only or idempotent, with the same idempotency key, unless Trust
// is TrustNone: see [Tool.Repeatable].
type Trust string

// The levels of trust.
const (
	// TrustReads believes a tool that declares itself read-only, and one that declares
	// itself idempotent only when the program died during a call. The default, except for
	// Go functions of the program.
	TrustReads Trust = "reads"
	// TrustAll also believes a tool that declares itself idempotent. The default of
	// [Local], [LocalSource] and the sources of package ensemble/local.
	TrustAll Trust = "all"
	// TrustNone believes only hints that make a tool look dangerous. A call that may have
	// taken effect is not repeated.
	TrustNone Trust = "none"
)

// trust returns the default trust in the tools of a source.
func trust(source Source) Trust {
	switch source.(type) {
	case localSource, ownfunctions.Source:
		return TrustAll
	}
	return TrustReads
}

// ReadOnly reports whether the tool declares that it changes nothing, and its ensemble
// believes that: it has [TrustReads] or [TrustAll]. Such a call can run without asking a
// person.
func (t *Tool) ReadOnly() bool {
	switch t.ensemble.options.Trust {
	case TrustReads, TrustAll:
		return t.definition.Hints.ReadOnly
	default:
		return false
	}
}

// TrustedHints returns the hints of the tool that its ensemble believes. A hint that makes
// a tool look dangerous is always believed. The others are believed with [TrustAll], and
// ReadOnly, with its consequence that nothing is destroyed, also with [TrustReads]. A hint
// that is not believed has its default.
func (t *Tool) TrustedHints() invoker.Hints {
	hints := t.definition.Hints
	if t.ensemble.options.Trust == TrustAll {
		return hints
	}
	hints.ReadOnly, hints.Idempotent = t.ReadOnly(), false
	if hints.Destructive != nil && !*hints.Destructive {
		hints.Destructive = nil
	}
	if hints.OpenWorld != nil && !*hints.OpenWorld {
		hints.OpenWorld = nil
	}
	return hints
}

// Repeatable reports whether a call of the tool that was cut off by the death of a
// process may be made again with the same key: the tool declares that it is read-only
// or idempotent, and its ensemble does not have [TrustNone].
func (t *Tool) Repeatable() bool {
	return t.ensemble.options.Trust != TrustNone && t.definition.Hints.Repeatable()
}

// repeatableAfterLoss reports the same for a call whose connection was lost.
func (t *Tool) repeatableAfterLoss() bool {
	if t.ensemble.options.Trust == TrustAll {
		return t.Repeatable()
	}
	return t.ReadOnly()
}

// mayRepeat reports whether a call that was made over s, and failed, should be
// repeated: its outcome is unknown, and a second call does no harm. A call that was
// answered with content is not repeated: its outcome is the answer.
func (t *Tool) mayRepeat(s *session, err error) bool {
	var failure *invoker.Failure
	return errors.As(err, &failure) && failure.Code == invoker.OutcomeUnknown && len(failure.Content) == 0 && t.repeatableAfterLoss() && !onRequest(s.endedBy())
}
