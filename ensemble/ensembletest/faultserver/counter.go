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

// counter counts the occasions of each rule. In a directory each occasion is an
// empty file, made by whoever comes first, so that processes that run at the
// same time, or were killed, agree. Occasions after the last at which a rule
// strikes are not counted, which bounds the number of files.
type counter struct {
	dir string // empty: in memory alone

	mu   sync.Mutex
	seen map[int]int // the latest occasion of a rule that was counted
}

func newCounter(dir string) *counter { return &counter{dir: dir, seen: make(map[int]int)} }

// strikes counts one occasion of the rule with this index, and reports whether
// the rule strikes at it.
func (c *counter) strikes(index int, r *Rule) (bool, error) {
	first, last := r.window()
	end := last
	if r.Times == Always {
		end = first - 1 // from there on there is nothing to count
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

// claim reports whether this occasion had not been counted by another process.
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
