// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/consort-go/consort/converse/history"
)

// tally counts by names. Its methods may be called concurrently; the zero value is empty.
type tally struct {
	most int // names, unlimited if 0; it begins anew when it is full
	mu   sync.Mutex
	of   map[string]int
}

// add changes the count of a name, and returns it. It is 0 at least.
func (c *tally) add(name string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = max(0, c.of[name]+n); n == 0 {
		delete(c.of, name)
		return 0
	}
	if _, isIn := c.of[name]; c.of == nil || !isIn && c.most > 0 && len(c.of) >= c.most {
		c.of = map[string]int{}
	}
	c.of[name] = n
	return n
}

// claim takes a name, and reports whether it was free. The caller must call add with -1 then.
func (c *tally) claim(name string) bool {
	isFree := c.add(name, 1) == 1
	if !isFree {
		c.add(name, -1)
	}
	return isFree
}

// errSent answers a request that a client repeats by itself.
var errSent = failure(http.StatusConflict, "already_sent",
	"The message of this request is in the log already: the connection ended before its answer.",
	"Read the conversation over /api, or send the message again if the model is to read it twice.")

// start starts the turn of a request. OpenAI's clients repeat a request by themselves when its connection
// breaks or their time is over. They count that in a header, and such a repetition does not send its
// message a second time. A turn in the background goes on without the client.
func (o openAI) start(w http.ResponseWriter, r *http.Request, s turnRequest, isBackground bool) (*turn, error) {
	key, count := "", r.Header.Get("X-Stainless-Retry-Count")
	if len(s.message) > 0 && len(s.answers)+len(s.returned) == 0 && !isBackground {
		key = r.Body.(*requestBody).key
	}
	if count == "" || count == "0" {
		o.h.sent.add(key, -1)
	}
	t, err := (*turn)(nil), error(errSent)
	if o.h.sent.add(key, 0) == 0 {
		t, err = o.h.startTurn(r.Context(), s)
	}
	if err != nil && s.fork != "" {
		err = errors.Join(err, o.h.store.Delete(context.WithoutCancel(r.Context()), s.fork, history.AnyLength))
	}
	if err == nil || errors.Is(err, errMayBeStored) { // OpenAI's clients would send the message again
		w.Header().Set("X-Should-Retry", "false")
	}
	if err != nil {
		return nil, err
	}
	if t.key = key; key != "" {
		o.h.sent.claim(key)
	}
	w.Header().Set("Consort-Conversation", t.conversation)
	return t, nil
}
