// SPDX-License-Identifier: Apache-2.0

package engine

import "sync"

// failures records the conversations whose last turn has failed, or was ended by a budget,
// for later watchers: the log does not show that.
type failures struct {
	mu sync.Mutex
	of map[string]noted
}

// noted is an end, and the length that the log had then; 0 if the engine does not know it.
type noted struct {
	ended  Ended
	length int
}

// maxFailures bounds the number of recorded failures.
const maxFailures = 1024

func (f *failures) note(conversation string, ended Ended, length int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.of {
		if len(f.of) < maxFailures {
			break
		}
		delete(f.of, other)
	}
	if f.of == nil {
		f.of = map[string]noted{}
	}
	f.of[conversation] = noted{ended, length}
}

func (f *failures) forget(conversation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, conversation)
}

// last returns the recorded end of a conversation, unless its log has grown to a greater length since, because another
// process continues the turn. The length 0 is not known.
func (f *failures) last(conversation string, length int) (Ended, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, failed := f.of[conversation]
	return last.ended, failed && (last.length == 0 || length <= last.length)
}
