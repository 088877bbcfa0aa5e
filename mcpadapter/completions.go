// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/contain"
)

// How many pages of a server are remembered, and how long their names may be.
const (
	maxCompletions   = 100
	maxElicitationID = 256
)

// completions matches a server's notifications/elicitation/complete with the
// questions that sent a person to a page (MCP 2025-11-25, client/elicitation,
// completion notifications). The notification may arrive long after the answer,
// and be read before the question that it is about has been handled. The zero value
// is ready to use.
type completions struct {
	mu    sync.Mutex
	pages []*completion // the oldest first
}

// completion is the state of one page that a server named.
type completion struct {
	id        string
	completed bool
	listeners []func()
}

// find returns the page of an id, which it adds if it is new; the oldest page is
// dropped for it at the limit. c.mu is held.
func (c *completions) find(id string) *completion {
	for _, known := range c.pages {
		if known.id == id {
			return known
		}
	}
	if len(c.pages) >= maxCompletions {
		c.pages = slices.Delete(c.pages, 0, 1)
	}
	added := &completion{id: id}
	c.pages = append(c.pages, added)
	return added
}

// completed marks a page as completed and returns the functions to call.
func (c *completions) completed(id string) []func() {
	if id == "" || len(id) > maxElicitationID {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(id)
	waiting := p.listeners
	p.completed, p.listeners = true, nil
	return waiting
}

// listen registers f for the completion of a page. It reports false if the page is
// completed already.
func (c *completions) listen(id string, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(id)
	if !p.completed {
		p.listeners = append(p.listeners, f)
	}
	return !p.completed
}

// onCompletion is [invoker.ElicitRequest].OnCompletion of a question with that
// elicitationId; nil if it has none that can be matched.
func (c *connection) onCompletion(id string) func(func()) {
	if id == "" || len(id) > maxElicitationID {
		return nil
	}
	return func(f func()) {
		if f != nil && !c.completions.listen(id, f) {
			c.report(f)
		}
	}
}

// elicitationComplete handles the notification of a server.
func (c *connection) elicitationComplete(params json.RawMessage) {
	var about struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &about) != nil {
		return
	}
	for _, f := range c.completions.completed(about.ID) {
		c.report(f)
	}
}

// report calls f on a goroutine that Close waits for.
func (c *connection) report(f func()) {
	c.start(func() {
		_ = contain.Call("the function for the completion of a page", f) // it is no fault of the connection
	})
}
