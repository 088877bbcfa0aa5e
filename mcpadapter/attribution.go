// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"maps"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// abandonedWork is how long a server may still work on a request that was given up and
// not answered. Until then, its questions may be about that request.
const abandonedWork = 10 * time.Minute

// maxAbandoned is the number of abandoned requests that are tracked individually.
const maxAbandoned = 1000

// attribution finds the request that a message of the server belongs to when the
// message does not name it: a question of the older protocols, or a log entry. Such a
// message must not reach the wrong client or conversation. It is guarded by the mutex
// of the interceptor; the zero value is ready to use.
type attribution struct {
	used   bool          // a personal request was made
	first  access.Origin // of the first one
	shared bool          // a request of another origin followed

	abandoned map[jsonrpc.ID]abandonedRequest // not answered with a result so far
	crowded   time.Time                       // end of abandonedWork of requests that are not tracked
	late      int                             // number of results of abandoned requests
}

// abandonedRequest is a request that was given up before its answer.
type abandonedRequest struct {
	origin access.Origin
	until  time.Time // the end of abandonedWork
}

// note records that a personal request is made.
func (a *attribution) note(origin access.Origin) {
	if !a.used {
		a.used, a.first = true, origin
	}
	a.shared = a.shared || origin != a.first
}

// giveUp records that a personal request was given up before its answer.
func (a *attribution) giveUp(id jsonrpc.ID, origin access.Origin) {
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

// answered records an answer. A result of an abandoned request is counted and ends the
// work on it. An error does not, because it may be the answer to the cancellation.
func (a *attribution) answered(response *jsonrpc.Response) {
	if _, abandoned := a.abandoned[response.ID]; abandoned && response.Error == nil {
		delete(a.abandoned, response.ID)
		a.late++
	}
}

// mayAsk reports whether a question can be attributed to origin: no abandoned request
// of another origin may still be running.
func (a *attribution) mayAsk(origin access.Origin) bool {
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

// only returns the exchange of the only call in flight. It returns nil if there are
// several or none, or if the server may still work on an abandoned request of another
// origin.
func (i *interceptor) only() (alone *exchange) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, x := range i.exchanges {
		switch {
		case x.call == nil && x.personal:
			return nil // the message may belong to this request
		case x.call == nil:
		case alone != nil:
			return nil
		default:
			alone = x
		}
	}
	if alone != nil && !i.attribution.mayAsk(alone.origin) {
		return nil
	}
	return alone
}

// isShared reports whether requests of several origins were made. If so, a log entry
// may be about an earlier request: unlike a question, which delays the answer to its
// call, it may be written after the answer.
func (i *interceptor) isShared() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.attribution.shared
}
