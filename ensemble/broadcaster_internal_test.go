// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"strings"
	"testing"
)

// The parents of a URI are looked up only if it is not longer than a limit: the lookups take time
// that is quadratic in its length, while sources and watchers wait.
func TestUpdatedWithALongURI(t *testing.T) {
	const whole = "a:/"
	short := whole + strings.Repeat("b/", (maxParents-len(whole))/2)
	long := short + "b/"
	for uri, want := range map[string][]string{short: {short, whole}, long: {long}} {
		w := &watcher{waits: make(map[News]bool), filled: make(chan struct{}, 1)}
		b := &broadcaster{watchers: map[*watcher]struct{}{w: {}}, wanted: map[string]struct{}{whole: {}, short: {}, long: {}}}
		b.updated(uri)
		var got []string
		for _, news := range w.take() {
			got = append(got, news.URI)
		}
		if !slices.Equal(got, want) {
			t.Errorf("a URI of %d bytes made %d news", len(uri), len(got))
		}
	}
}
