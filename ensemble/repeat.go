// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"

	"github.com/consort-go/consort/invoker"
)

// Trust says which hints of its tools an ensemble believes when a call may or may
// not have taken effect. When its connection was lost the hints decide whether the
// call is repeated, at once and unseen, and whether the failure says that it is
// retryable. When the process died, a conversation makes a call again whose tool is
// read-only or idempotent, with the key that its log has, unless none is believed:
// see [Tool.Repeatable].
type Trust string

// How far hints are trusted.
const (
	// TrustReads believes a tool that says that it is read-only, when a connection
	// was lost. The default, but for the program's own functions.
	TrustReads Trust = "reads"
	// TrustAll also believes one that says that it is idempotent. The default of
	// [Local] and [LocalSource].
	TrustAll Trust = "all"
	// TrustNone believes none, and so repeats nothing.
	TrustNone Trust = "none"
)

// trust is what is believed of a source if nothing else is said.
func trust(source Source) Trust {
	if _, own := source.(localSource); own {
		return TrustAll
	}
	return TrustReads
}

// Repeatable reports whether a call of the tool that the death of a process has cut
// off may be made again, with the same key: the tool says that it is read-only or
// idempotent, and its ensemble has not [TrustNone].
func (t *Tool) Repeatable() bool {
	return t.ensemble.options.Trust != TrustNone && t.definition.Hints.Repeatable()
}

// repeatable reports whether that is so of a call whose connection was lost.
func (t *Tool) repeatable() bool {
	switch hints := t.definition.Hints; t.ensemble.options.Trust {
	case TrustReads:
		return hints.ReadOnly
	case TrustAll:
		return t.Repeatable()
	default:
		return false
	}
}

// mayRepeat reports whether a call that was made over l, and failed, is to be
// repeated: nobody knows what came of it, and a second one does no harm. One
// that was answered, with content, is not: its outcome is the answer.
func (t *Tool) mayRepeat(l *life, err error) bool {
	var failure *invoker.Failure
	return errors.As(err, &failure) && failure.Code == invoker.OutcomeUnknown && len(failure.Content) == 0 && t.repeatable() && !t.ensemble.endedOnRequest(l)
}

// endedOnRequest reports whether the life ended because somebody asked for it.
func (e *Ensemble) endedOnRequest(l *life) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Is(l.ended, ErrDisconnected) || errors.Is(l.ended, ErrClosed)
}
