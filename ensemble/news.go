// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"iter"
	"strings"
	"sync"
)

// Watch returns the news of all ensembles from now on: that tools, resources
// or prompts changed, or a resource to which somebody subscribed; each is worth
// asking for anew. Also an ensemble that went away, or came back, changes what
// there is. The sequence ends with ctx and with the roster.
//
// News that nobody took yet is merged, so that little waits however slow the
// loop is. The sequence is ranged over once, by one goroutine; it needs none of
// its own. A watcher that is not ranged over costs its memory until ctx ends.
//
// News connects to nothing: an ensemble that nobody uses has none.
func (r *Roster) Watch(ctx context.Context) iter.Seq[News] {
	w := &watcher{waits: make(map[News]bool), filled: make(chan struct{}, 1)}
	for _, e := range r.ensembles {
		e.news.add(w)
	}
	leave := func() {
		for _, e := range r.ensembles {
			e.news.remove(w)
		}
	}
	stop := context.AfterFunc(ctx, leave)
	return func(yield func(News) bool) {
		defer leave()
		defer stop()
		for {
			select {
			case <-w.filled:
			case <-ctx.Done():
				return
			case <-r.done:
				return
			}
			for _, news := range w.take() {
				if ctx.Err() != nil || !yield(news) {
					return
				}
			}
		}
	}
}

// watcher gathers news for one loop.
type watcher struct {
	mu     sync.Mutex
	order  []News
	waits  map[News]bool
	filled chan struct{} // holds a value while news waits
}

func (w *watcher) add(news News) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits[news] {
		return
	}
	w.waits[news] = true
	w.order = append(w.order, news)
	select {
	case w.filled <- struct{}{}:
	default:
	}
}

// take returns what waits.
func (w *watcher) take() []News {
	w.mu.Lock()
	defer w.mu.Unlock()
	order := w.order
	w.order = nil
	clear(w.waits)
	return order
}

// newsroom passes the news of one ensemble on to those who watch. Its lock is
// taken last: sources bring news with locks of their own held.
type newsroom struct {
	ensemble string

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	wanted   map[string]struct{} // the resources that somebody subscribed to
}

func newNewsroom(ensemble string) *newsroom {
	return &newsroom{ensemble: ensemble, watchers: make(map[*watcher]struct{}), wanted: make(map[string]struct{})}
}

func (n *newsroom) add(w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watchers[w] = struct{}{}
}

func (n *newsroom) remove(w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watchers, w)
}

// want makes updates of a resource news, or not.
func (n *newsroom) want(uri string, wanted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wanted {
		n.wanted[uri] = struct{}{}
	} else {
		delete(n.wanted, uri)
	}
}

// tell passes on that something of these kinds changed.
func (n *newsroom) tell(kinds ...NewsKind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		for _, kind := range kinds {
			w.add(News{Ensemble: n.ensemble, Kind: kind})
		}
	}
}

// updated passes on that a resource was updated, if somebody subscribed to it
// or to one that it is a part of (MCP 2025-11-25, schema §
// ResourceUpdatedNotification). It is told under the name that was subscribed
// to, so that no server makes up news without end.
func (n *newsroom) updated(uri string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for whole := uri; whole != ""; whole = parent(whole) {
		if _, ok := n.wanted[whole]; ok {
			for w := range n.watchers {
				w.add(News{Ensemble: n.ensemble, Kind: ResourceUpdated, URI: whole})
			}
		}
	}
}

// parent returns the URI up to its last slash, the slash included if the URI
// does not end with it; empty if there is none.
func parent(uri string) string {
	if rest, ok := strings.CutSuffix(uri, "/"); ok {
		return rest
	}
	return uri[:strings.LastIndexByte(uri, '/')+1]
}
