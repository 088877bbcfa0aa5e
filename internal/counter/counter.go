// SPDX-License-Identifier: Apache-2.0

// Package counter counts by names.
package counter

import "sync"

// Names counts by names. Its methods may be called concurrently; the zero value is empty.
type Names struct {
	mu sync.Mutex
	of map[string]int
}

// Add changes the count of a name, and returns it. It is 0 at least.
func (c *Names) Add(name string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = max(0, c.of[name]+n); n == 0 {
		delete(c.of, name)
		return 0
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[name] = n
	return n
}

// Claim takes a name, and reports whether it was free. The caller must call Add with -1 then.
func (c *Names) Claim(name string) bool {
	isFree := c.Add(name, 1) == 1
	if !isFree {
		c.Add(name, -1)
	}
	return isFree
}
