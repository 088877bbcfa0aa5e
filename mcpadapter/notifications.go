// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"maps"
	"slices"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/internal/debounce"
)

// notifications passes on the server's notifications of changes.
type notifications struct {
	tools     *debounce.Debouncer
	changed   chan struct{} // for Connection.Changed
	resources *debounce.Debouncer
	prompts   *debounce.Debouncer

	mu       sync.Mutex
	listener func(ensemble.News)      // nil before Listen
	watched  map[string]*subscription // by URI
}

func newNotifications() *notifications {
	n := &notifications{changed: make(chan struct{}, 1), watched: make(map[string]*subscription)}
	n.tools = debounce.New(func() {
		select {
		case n.changed <- struct{}{}:
		default: // a change is already pending
		}
	})
	n.resources = debounce.New(func() { n.tell(ensemble.News{Kind: ensemble.ResourcesChanged}) })
	n.prompts = debounce.New(func() { n.tell(ensemble.News{Kind: ensemble.PromptsChanged}) })
	return n
}

func (n *notifications) stop() {
	n.tools.Stop()
	n.resources.Stop()
	n.prompts.Stop()
}

func (n *notifications) tell(news ensemble.News) {
	n.mu.Lock()
	heard := n.listener
	n.mu.Unlock()
	if heard != nil {
		heard(news)
	}
}

// toolsChanged reports that the tools may have changed: to the listener immediately, so
// that it is known before a result that follows, and through changed.
func (n *notifications) toolsChanged() {
	n.tell(ensemble.News{Kind: ensemble.ToolsChanged})
	n.tools.Note()
}

// lists reports that any of the lists may have changed, after a time without a stream
// or request to listen.
func (n *notifications) lists() {
	n.toolsChanged()
	n.resources.Note()
	n.prompts.Note()
}

// missed reports that anything may have changed.
func (n *notifications) missed() {
	n.lists()
	n.mu.Lock()
	watched := slices.Sorted(maps.Keys(n.watched))
	n.mu.Unlock()
	for _, uri := range watched {
		n.tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: uri})
	}
}

// updated reports that a resource was updated.
func (c *connection) updated(uri string) {
	c.notifications.tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: uri})
}

// Listen implements [ensemble.Library].
func (c *connection) Listen(heard func(ensemble.News)) {
	c.notifications.mu.Lock()
	defer c.notifications.mu.Unlock()
	c.notifications.listener = heard
}
