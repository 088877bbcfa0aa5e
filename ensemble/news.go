// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"iter"
	"strings"
	"sync"
)

// Watch returns the news of all ensembles from now on: changes of tools, resources or
// prompts, and updates of resources with a subscription. Each means that the program
// should list again, or read the resource again. An ensemble that goes away or comes
// back is reported as such a change too. The sequence ends with ctx and with the
// roster.
//
// News that was not yet consumed is merged, so that little accumulates however slow the
// loop is. Range over the sequence once, in one goroutine; it starts none itself. A
// sequence that is never ranged over occupies memory until ctx ends.
//
// Watch does not connect: an ensemble that is not in use has no news.
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

// watcher collects news for one loop.
type watcher struct {
	mu     sync.Mutex
	order  []News
	waits  map[News]bool
	filled chan struct{} // holds a value while news is pending
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

// take returns the pending news.
func (w *watcher) take() []News {
	w.mu.Lock()
	defer w.mu.Unlock()
	order := w.order
	w.order = nil
	clear(w.waits)
	return order
}

// newsroom passes the news of one ensemble to its watchers. Its lock is the last in the
// lock order: sources deliver news while they hold locks of their own.
type newsroom struct {
	ensemble string

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	wanted   map[string]struct{} // the resources with a subscription
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

// want enables or disables news about updates of a resource.
func (n *newsroom) want(uri string, wanted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wanted {
		n.wanted[uri] = struct{}{}
	} else {
		delete(n.wanted, uri)
	}
}

// tell reports changes of these kinds.
func (n *newsroom) tell(kinds ...NewsKind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		for _, kind := range kinds {
			w.add(News{Ensemble: n.ensemble, Kind: kind})
		}
	}
}

// updated reports that a resource was updated, if there is a subscription to it or to a
// resource that contains it (MCP 2025-11-25, schema § ResourceUpdatedNotification). The
// news has the URI of the subscription, so that a server cannot create an unlimited
// number of different news.
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

// parent returns the URI up to its last slash, including the slash if the URI does not
// end with it; empty without a slash.
func parent(uri string) string {
	if rest, ok := strings.CutSuffix(uri, "/"); ok {
		return rest
	}
	return uri[:strings.LastIndexByte(uri, '/')+1]
}
