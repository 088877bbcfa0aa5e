// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"
)

// SetStale makes holders beat quickly, and those that do not stale after a time, until the test ends.
func SetStale(t *testing.T, after time.Duration) {
	beat, stale := beatEvery, staleAfter
	beatEvery, staleAfter = 20*time.Millisecond, after
	t.Cleanup(func() { beatEvery, staleAfter = beat, stale })
}

// LockOnly locks a record as a process does that then dies.
func LockOnly(t *testing.T, r Records, name string) (store func(after string) bool) {
	h, err := r.lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return func(after string) bool {
		stored, err := h.store(t.Context(), []byte(after))
		if err != nil {
			t.Error(err)
		}
		return stored
	}
}

// FailAfterLostBeat locks a record, stores a beat that the holder does not know of, and unlocks the record.
func FailAfterLostBeat(t *testing.T, r Records, name string) {
	h, err := r.lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := h.exec(t.Context(), "UPDATE @.logins SET holder = $2 WHERE name = $1", name, h.id+"/1"); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	h.release(t.Context())
}
