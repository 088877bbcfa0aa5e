// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"

	"github.com/consort-go/consort/invoker"
)

// Trust says which hints of its tools an ensemble believes when a call may or
// may not have taken effect: whether it repeats the call, once, and whether the
// failure says that it is retryable. A call that a crash has cut off is repeated
// by the conversation, see [Tool.Repeatable].
type Trust string

// How far hints are trusted.
const (
	// TrustReads believes a tool that says that it is read-only. The default.
	TrustReads Trust = "reads"
	// TrustAll also believes one that says that it is idempotent.
	TrustAll Trust = "all"
	// TrustNone believes none, and so repeats nothing.
	TrustNone Trust = "none"
)

// repeatable reports whether a call of the tool may be made twice.
func (t *Tool) repeatable() bool {
	switch hints := t.definition.Hints; t.ensemble.options.Trust {
	case TrustReads:
		return hints.ReadOnly
	case TrustAll:
		return hints.Repeatable()
	default:
		return false
	}
}

// Repeatable reports whether the conversation may make a call again that was cut
// off by a crash, with the same key: the tool says that it is read-only or
// idempotent, and the ensemble trusts hints at all.
func (t *Tool) Repeatable() bool {
	return t.ensemble.options.Trust != TrustNone && t.definition.Hints.Repeatable()
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
