// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"

	"github.com/consort-go/consort/invoker"
)

// Trust says which hints of its tools an ensemble believes when a call may or may
// not have taken effect: when its connection was lost, whether the call is repeated,
// once, and whether the failure says that it is retryable; when its process died,
// whether the conversation makes it again.
type Trust string

// How far hints are trusted.
const (
	// TrustReads believes a tool that says that it is read-only. The default, but for
	// the program's own functions.
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

// Repeatable reports whether a call of the tool may be made twice, with the same key,
// when nobody knows what came of the first: the tool says that this does no harm, and
// its ensemble believes that.
func (t *Tool) Repeatable() bool {
	switch hints := t.definition.Hints; t.ensemble.options.Trust {
	case TrustReads:
		return hints.ReadOnly
	case TrustAll:
		return hints.Repeatable()
	default:
		return false
	}
}

// mayRepeat reports whether a call that was made over l, and failed, is to be
// repeated: nobody knows what came of it, and a second one does no harm. One
// that was answered, with content, is not: its outcome is the answer.
func (t *Tool) mayRepeat(l *life, err error) bool {
	var failure *invoker.Failure
	return errors.As(err, &failure) && failure.Code == invoker.OutcomeUnknown && len(failure.Content) == 0 && t.Repeatable() && !t.ensemble.endedOnRequest(l)
}

// endedOnRequest reports whether the life ended because somebody asked for it.
func (e *Ensemble) endedOnRequest(l *life) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Is(l.ended, ErrDisconnected) || errors.Is(l.ended, ErrClosed)
}
