// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"maps"
	"time"

	"github.com/consort-go/consort/internal/callers"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// abandonedWork is how long a server may still work on a request that was given up
// and that it has not answered: until then its questions can be about that request.
const abandonedWork = 10 * time.Minute

// maxAbandoned is how many requests that were given up are told apart.
const maxAbandoned = 1000

// attribution finds the request that a message of the server belongs to which names
// none: a question of the older protocols, or a line of the server's log. Such a
// message must not reach another client or conversation than it is meant for. The
// mutex of the wire guards it; the zero value is ready to use.
type attribution struct {
	used   bool           // a personal request was made
	first  callers.Origin // of the first one
	shared bool           // one of another origin followed

	abandoned map[jsonrpc.ID]abandonedRequest // without a result so far
	crowded   time.Time                       // until then the server may work on others that are not among them
	late      int                             // results of requests that were given up
}

// abandonedRequest is a request that was given up.
type abandonedRequest struct {
	origin callers.Origin
	until  time.Time // then it is no longer worked on
}

// note takes in that a personal request is made.
func (a *attribution) note(origin callers.Origin) {
	if !a.used {
		a.used, a.first = true, origin
	}
	a.shared = a.shared || origin != a.first
}

// giveUp takes in that a personal request was given up before its answer.
func (a *attribution) giveUp(id jsonrpc.ID, origin callers.Origin) {
	now := time.Now()
	if len(a.abandoned) >= maxAbandoned {
		maps.DeleteFunc(a.abandoned, func(_ jsonrpc.ID, r abandonedRequest) bool { return !now.Before(r.until) })
	}
	if len(a.abandoned) >= maxAbandoned {
		clear(a.abandoned)
		a.crowded = now.Add(abandonedWork)
	}
	if a.abandoned == nil {
		a.abandoned = make(map[jsonrpc.ID]abandonedRequest)
	}
	a.abandoned[id] = abandonedRequest{origin, now.Add(abandonedWork)}
}

// answered takes in an answer. A result of a request that was given up is counted, and
// ends the work on it. An error may be the answer to its cancellation, and does not.
func (a *attribution) answered(response *jsonrpc.Response) {
	if _, abandoned := a.abandoned[response.ID]; abandoned && response.Error == nil {
		delete(a.abandoned, response.ID)
		a.late++
	}
}

// mayAsk reports whether no work for another origin can be what a question is about,
// as far as requests go that were given up.
func (a *attribution) mayAsk(origin callers.Origin) bool {
	if !a.shared {
		return true
	}
	now := time.Now()
	for _, r := range a.abandoned {
		if r.origin != origin && now.Before(r.until) {
			return false
		}
	}
	return !now.Before(a.crowded)
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
