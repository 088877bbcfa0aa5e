// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"maps"
	"slices"
	"sync"

	"github.com/consort-go/consort/ensemble"
)

// news passes on what the server tells of changes.
type news struct {
	tools     *debouncer
	changed   chan struct{} // for Connection.Changed
	resources *debouncer
	prompts   *debouncer

	mu      sync.Mutex
	heard   func(ensemble.News)      // nil before Listen
	watched map[string]*subscription // by URI
}

func newNews() *news {
	n := &news{changed: make(chan struct{}, 1), watched: make(map[string]*subscription)}
	n.tools = newDebouncer(func() {
		select {
		case n.changed <- struct{}{}:
		default: // one is waiting to be seen
		}
	})
	n.resources = newDebouncer(func() { n.tell(ensemble.News{Kind: ensemble.ResourcesChanged}) })
	n.prompts = newDebouncer(func() { n.tell(ensemble.News{Kind: ensemble.PromptsChanged}) })
	return n
}

func (n *news) stop() {
	n.tools.stop()
	n.resources.stop()
	n.prompts.stop()
}

func (n *news) tell(news ensemble.News) {
	n.mu.Lock()
	heard := n.heard
	n.mu.Unlock()
	if heard != nil {
		heard(news)
	}
}

// toolsChanged says that the tools may have changed: at once, so that it is known
// when a result that follows on the wire is, and by way of changed.
func (n *news) toolsChanged() {
	n.tell(ensemble.News{Kind: ensemble.ToolsChanged})
	n.tools.note()
}

// lists says that any of the lists may have changed: nobody listened for a
// while.
func (n *news) lists() {
	n.toolsChanged()
	n.resources.note()
	n.prompts.note()
}

// missed says that anything may have changed.
func (n *news) missed() {
	n.lists()
	n.mu.Lock()
	watched := slices.Sorted(maps.Keys(n.watched))
	n.mu.Unlock()
	for _, uri := range watched {
		n.tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: uri})
	}
}

// updated passes on that a resource was updated.
func (c *connection) updated(uri string) {
	c.news.tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: uri})
}

// Listen implements [ensemble.Library].
func (c *connection) Listen(heard func(ensemble.News)) {
	c.news.mu.Lock()
	defer c.news.mu.Unlock()
	c.news.heard = heard
}
