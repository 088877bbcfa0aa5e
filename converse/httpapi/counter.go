// SPDX-License-Identifier: Apache-2.0

package httpapi

import "sync"

// counter counts by names. Its methods may be called concurrently; the zero value is empty.
type counter struct {
	most int // names, unlimited if 0; it begins anew when it is full
	mu   sync.Mutex
	of   map[string]int
}

// add changes the count of a name, and returns it. It is 0 at least.
func (c *counter) add(name string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = max(0, c.of[name]+n); n == 0 {
		delete(c.of, name)
		return 0
	}
	if _, isIn := c.of[name]; c.of == nil || !isIn && c.most > 0 && len(c.of) >= c.most {
		c.of = map[string]int{}
	}
	c.of[name] = n
	return n
}

// claim takes a name, and reports whether it was free. The caller must call add with -1 then.
func (c *counter) claim(name string) bool {
	isFree := c.add(name, 1) == 1
	if !isFree {
		c.add(name, -1)
	}
	return isFree
}
