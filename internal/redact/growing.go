// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxFormer is how many secrets [Growing] remembers besides those added last.
const maxFormer = 256

// Growing redacts secrets like the function of [New], and takes more secrets while it is
// in use. It forgets the oldest when there are too many. All methods may be called
// concurrently.
type Growing struct {
	clean   atomic.Pointer[cleaner]
	mu      sync.Mutex
	secrets []string // the newest last
}

// NewGrowing returns a Growing for some secrets.
func NewGrowing(secrets ...string) *Growing {
	g := &Growing{}
	g.Add(secrets...)
	return g
}

// Add adds secrets. Those that were added before remain.
func (g *Growing) Add(secrets ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	former := slices.DeleteFunc(g.secrets, func(secret string) bool { return slices.Contains(secrets, secret) })
	former = former[max(0, len(former)-maxFormer):]
	g.secrets = append(slices.Clone(former), secrets...)
	g.clean.Store(newCleaner(least, g.secrets).index())
}

// IsEmpty reports whether g has only secrets that are too short to search for, or none.
func (g *Growing) IsEmpty() bool { return g.clean.Load() == nil }

// Text returns text without the secrets.
func (g *Growing) Text(text string) string { return g.clean.Load().text(text) }

// Part is a [PartFunc] that redacts the secrets.
func (g *Growing) Part(text string, last bool) (clean, held string) {
	return g.clean.Load().part(text, last)
}
