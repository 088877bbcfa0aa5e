// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/stack"
)

// TestGrow starts many goroutines and looks at the memory of their stacks: for each
// about 8 KiB, of which it may have had 2, and not 16.
func TestGrow(t *testing.T) {
	const goroutines = 1000
	var ready, done sync.WaitGroup
	stop := make(chan struct{})
	runtime.GC() // frees the stacks of goroutines that have ended
	before := stacks()
	for range goroutines {
		ready.Add(1)
		done.Go(func() {
			stack.Grow()
			ready.Done()
			<-stop
		})
	}
	ready.Wait()
	each := (stacks() - before) / goroutines
	close(stop)
	done.Wait()
	if each < 5<<10 || each > 12<<10 {
		t.Errorf("the stack of a goroutine has %d bytes, want about 8 KiB", each)
	}
}

// stacks returns the bytes that all stacks occupy.
func stacks() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
