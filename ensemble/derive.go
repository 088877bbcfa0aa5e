// SPDX-License-Identifier: Apache-2.0

package ensemble

import "sync"

// derived keeps what others made from a catalog.
type derived struct {
	mu     sync.Mutex
	values map[any]any
}

// maxDerived is how many values a catalog keeps.
const maxDerived = 64

// Derive returns what derive returned when it was last called for the key, and
// calls it if it was not. It keeps the values of the last 64 keys or fewer, so
// that the many conversations which share a catalog also share what they make
// from it. The key is compared as that of a map. Derive may be called
// concurrently, also for one key; derive then runs once.
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
