// SPDX-License-Identifier: Apache-2.0

package engine

import "sync"

// failures are the ends of the conversations whose last turn has failed, for those
// who ask later: the log does not tell.
type failures struct {
	mu sync.Mutex
	of map[string]Ended
}

// maxFailures is how many conversations are remembered to have failed.
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
