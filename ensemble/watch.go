// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"iter"
	"sync"
)

// Watch returns the news of all ensembles from now on: changes of tools, resources or
// prompts, and updates of resources with a subscription. Each means that the program
// should list again, or read the resource again. An ensemble that comes or goes is reported
// as such a change of all three: it was added or removed ([Roster.Replace]), it could not
// be connected or was [Parked], or it is connected after that or after a loss. The
// sequence ends with ctx and with the roster.
//
// News that was not yet consumed is merged, so that little accumulates however slow the
// loop is. Range over the sequence once, in one goroutine; it starts none itself. A
// sequence that is never ranged over occupies memory until ctx ends.
//
// Watch does not connect: an ensemble that is not in use has no news.
func (r *Roster) Watch(ctx context.Context) iter.Seq[News] {
	w := &watcher{waits: make(map[News]bool), filled: make(chan struct{}, 1)}
	r.mu.Lock()
	r.watchers[w] = struct{}{}
	for _, e := range r.members.ensembles {
		e.news.add(w)
	}
	r.mu.Unlock()
	leave := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
		for _, e := range r.members.ensembles {
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
			case <-r.life.Done():
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

// allChanged is the news when an ensemble comes or goes.
var allChanged = []NewsKind{ToolsChanged, ResourcesChanged, PromptsChanged}

// addChange adds the news that an ensemble was added or removed.
func (w *watcher) addChange(ensemble string) {
	for _, kind := range allChanged {
		w.add(News{Ensemble: ensemble, Kind: kind})
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
