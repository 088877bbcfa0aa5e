// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// counter counts the occasions of each rule. In a directory, each occasion is an empty
// file, created by the first process that reaches it, so that processes that run at the
// same time, or were killed, agree. Occasions after the last strike of a rule are not
// counted, which bounds the number of files.
type counter struct {
	dir string // empty: only in memory

	mu   sync.Mutex
	seen map[int]int // the latest counted occasion of each rule
}

func newCounter(dir string) *counter { return &counter{dir: dir, seen: make(map[int]int)} }

// strikes counts an occasion of the rule with this index, and reports whether the rule
// strikes at it.
func (c *counter) strikes(index int, r *Rule) (bool, error) {
	first, last := r.window()
	end := last
	if r.Times == Always {
		end = first - 1 // from first on, every occasion strikes without counting
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.seen[index] < end {
		c.seen[index]++
		mine, err := c.claim(index, c.seen[index])
		if err != nil {
			return false, err
		}
		if mine {
			return c.seen[index] >= first, nil
		}
	}
	return r.Times == Always, nil
}

// claim reports whether no other process has counted this occasion.
func (c *counter) claim(index, occasion int) (bool, error) {
	if c.dir == "" {
		return true, nil
	}
	name := filepath.Join(c.dir, fmt.Sprintf("rule-%d-occasion-%d", index+1, occasion))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("faultserver: count an occasion: %w", err)
	}
	return true, f.Close()
}
