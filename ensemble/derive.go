// SPDX-License-Identifier: Apache-2.0

package ensemble

import "sync"

// derived caches values that were derived from a catalog.
type derived struct {
	mu     sync.Mutex
	values map[any]any
}

// maxDerived is the maximum number of cached values of a catalog.
const maxDerived = 64

// Derive returns the cached value for the key; without one, it calls derive and caches
// the result. A catalog caches the values of at most the last 64 keys, so that the
// conversations that share a catalog also share the values derived from it. Keys are
// compared like the keys of a map. Derive may be called concurrently, also with the
// same key; derive then runs once.
func (c *Catalog) Derive(key any, derive func() any) any {
	c.derived.mu.Lock()
	defer c.derived.mu.Unlock()
	value, ok := c.derived.values[key]
	if !ok {
		value = derive()
		if len(c.derived.values) == maxDerived || c.derived.values == nil {
			c.derived.values = make(map[any]any)
		}
		c.derived.values[key] = value
	}
	return value
}
