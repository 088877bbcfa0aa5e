// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"time"

	"github.com/consort-go/consort/internal/callers"
)

// abandonedWork is how long a server may still work on a request that was given up:
// until then its questions can be about that request.
const abandonedWork = 10 * time.Minute

// attribution finds the request that a message of the server belongs to which names
// none: a question of the older protocols, or a line of the server's log. Such a
// message must not reach another client or conversation than it is meant for. The
// mutex of the wire guards it; the zero value is ready to use.
type attribution struct {
	used   bool           // a personal request was made
	first  callers.Origin // of the first one
	shared bool           // one of another origin followed

	abandoned          time.Time // until then the server may work on requests that were given up
	abandonedBy        callers.Origin
	abandonedBySeveral bool
}

// note takes in that a personal request is made.
func (a *attribution) note(origin callers.Origin) {
	if !a.used {
		a.used, a.first = true, origin
	}
	a.shared = a.shared || origin != a.first
}

// giveUp takes in that a personal request was given up before its answer.
func (a *attribution) giveUp(origin callers.Origin) {
	now := time.Now()
	if now.Before(a.abandoned) {
		a.abandonedBySeveral = a.abandonedBySeveral || origin != a.abandonedBy
	} else {
		a.abandonedBy, a.abandonedBySeveral = origin, false
	}
	a.abandoned = now.Add(abandonedWork)
}

// mayAsk reports whether no work for another origin can be what a question is about,
// as far as requests go that were given up.
func (a *attribution) mayAsk(origin callers.Origin) bool {
	return !time.Now().Before(a.abandoned) || !a.abandonedBySeveral && a.abandonedBy == origin
}

// only returns the exchange of the call that is in flight alone; nil if there are
// more, or none, or the server may still work on a request of another origin that was
// given up.
func (w *wire) only() (alone *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.exchanges {
		switch {
		case x.call == nil && x.personal:
			return nil // it may be that of somebody else
		case x.call == nil:
		case alone != nil:
			return nil
		default:
			alone = x
		}
	}
	if alone != nil && !w.attribution.mayAsk(alone.origin) {
		return nil
	}
	return alone
}

// isShared reports whether requests of several origins were made. A line of the log
// can then be about an earlier request: unlike a question, which keeps its call
// waiting, it may be written after the answer.
func (w *wire) isShared() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attribution.shared
}
