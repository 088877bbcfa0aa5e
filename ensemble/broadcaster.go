// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"strings"
	"sync"
)

// broadcaster passes the news of one ensemble to its watchers. Its lock is the last in
// the lock order: sources deliver news while they hold locks of their own.
type broadcaster struct {
	ensemble string

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	wanted   map[string]struct{} // the resources with a subscription
}

func (b *broadcaster) add(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[w] = struct{}{}
}

func (b *broadcaster) remove(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, w)
}

// want enables or disables news about updates of a resource.
func (b *broadcaster) want(uri string, wanted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wanted {
		b.wanted[uri] = struct{}{}
	} else {
		delete(b.wanted, uri)
	}
}

// tell reports changes of these kinds.
func (b *broadcaster) tell(kinds ...NewsKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers {
		for _, kind := range kinds {
			w.add(News{Ensemble: b.ensemble, Kind: kind})
		}
	}
}

// maxParents is how many bytes a URI may have for its parents to be looked up.
const maxParents = 8 << 10

// updated reports that a resource was updated, if there is a subscription to it or to a
// resource that contains it (MCP 2025-11-25, schema § ResourceUpdatedNotification). The
// news has the URI of the subscription, so that a server cannot create an unlimited
// number of different news. A resource with a longer URI than maxParents is contained in no
// other: each of its slashes would need a lookup.
func (b *broadcaster) updated(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	isLong := len(uri) > maxParents
	for whole := uri; whole != "" && (!isLong || whole == uri); whole = parent(whole) {
		if _, ok := b.wanted[whole]; ok {
			for w := range b.watchers {
				w.add(News{Ensemble: b.ensemble, Kind: ResourceUpdated, URI: whole})
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
