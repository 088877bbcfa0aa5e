// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/contain"
)

// The limits of completions: listeners per connection, completed pages to remember, and
// bytes of an elicitation ID.
const (
	maxCompletionListeners = 1000
	maxCompleted           = 100
	maxElicitationID       = 256
)

// completions matches a server's notifications/elicitation/complete with the questions
// that sent a person to a web page (MCP 2025-11-25, client/elicitation, completion
// notifications). The notification may arrive long after the answer, or be read before
// its question has been handled. The zero value is ready to use.
type completions struct {
	mu        sync.Mutex
	listeners []completionListener // oldest first
	completed []string             // IDs, oldest first
}

// completionListener waits for the completion of a page.
type completionListener struct {
	id     string
	client string // the client whose call asked for the page
	notify func()
}

// complete marks a page as completed and returns the functions to call.
func (c *completions) complete(id string) (notify []func()) {
	if id == "" || len(id) > maxElicitationID {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = slices.DeleteFunc(c.listeners, func(l completionListener) bool {
		if l.id == id {
			notify = append(notify, l.notify)
		}
		return l.id == id
	})
	if slices.Contains(c.completed, id) {
		return notify
	}
	if len(c.completed) == maxCompleted {
		c.completed = slices.Delete(c.completed, 0, 1)
	}
	c.completed = append(c.completed, id)
	return notify
}

// listen registers a listener. It returns false if the page is already completed. At
// the limit, the client with the most listeners loses its oldest.
func (c *completions) listen(l completionListener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.completed, l.id) {
		return false
	}
	if c.listeners = append(c.listeners, l); len(c.listeners) > maxCompletionListeners {
		c.evict()
	}
	return true
}

// evict drops one listener; c.mu is held.
func (c *completions) evict() {
	count, most := make(map[string]int), ""
	for _, l := range c.listeners {
		if count[l.client]++; count[l.client] > count[most] {
			most = l.client
		}
	}
	oldest := slices.IndexFunc(c.listeners, func(l completionListener) bool { return l.client == most })
	c.listeners = slices.Delete(c.listeners, oldest, oldest+1)
}

// onCompletion returns the [invoker.ElicitRequest].OnCompletion of a question with that
// elicitationId for a client, or nil if the ID is empty or too long.
func (q *questions) onCompletion(id, client string) func(func()) {
	if id == "" || len(id) > maxElicitationID {
		return nil
	}
	return func(f func()) {
		if f != nil && !q.completions.listen(completionListener{id, client, f}) {
			q.report(f)
		}
	}
}

// elicitationComplete handles notifications/elicitation/complete.
func (q *questions) elicitationComplete(params json.RawMessage) {
	var about struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &about) != nil {
		return
	}
	for _, f := range q.completions.complete(about.ID) {
		q.report(f)
	}
}

// report calls f on a goroutine that Close waits for.
func (q *questions) report(f func()) {
	q.life.start(func() {
		_ = contain.Call("the function for the completion of a page", f) // a panic is not the connection's fault
	})
}
