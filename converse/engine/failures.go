// SPDX-License-Identifier: Apache-2.0

package engine

import "sync"

// failures records the conversations whose last turn has failed, or was ended by a budget,
// for later watchers: the log does not show that.
type failures struct {
	mu sync.Mutex
	of map[string]Ended
}

// maxFailures bounds the number of recorded failures.
const maxFailures = 1024

func (f *failures) note(conversation string, ended Ended) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.of {
		if len(f.of) < maxFailures {
			break
		}
		delete(f.of, other)
	}
	if f.of == nil {
		f.of = map[string]Ended{}
	}
	f.of[conversation] = ended
}

func (f *failures) forget(conversation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, conversation)
}

func (f *failures) last(conversation string) (Ended, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended, failed := f.of[conversation]
	return ended, failed
}
