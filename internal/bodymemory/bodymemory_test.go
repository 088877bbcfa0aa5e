// SPDX-License-Identifier: Apache-2.0

package bodymemory_test

import (
	"errors"
	"testing"

	"github.com/consort-go/consort/internal/bodymemory"
)

// TestWait: requests that wait have half of the memory of a client, and half of all, and give it back.
func TestWait(t *testing.T) {
	limit := bodymemory.New(1600, 50) // 400 for a client
	wait := func(client string, size int64) (*bodymemory.Memory, error) {
		m := limit.For(client)
		if err := m.Take(size); err != nil {
			t.Fatal(err)
		}
		err := m.Wait()
		if err != nil {
			m.Release()
		}
		return m, err
	}
	var all []*bodymemory.Memory
	for _, client := range []string{"a", "b", "c", "d"} {
		for _, size := range []int64{150, 50} {
			m, err := wait(client, size)
			if err != nil {
				t.Errorf("%s: %v", client, err)
			}
			if m.Wait() != nil {
				t.Error("the same memory waits twice")
			}
			all = append(all, m)
		}
		if _, err := wait(client, 1); !errors.Is(err, bodymemory.ErrClient) {
			t.Errorf("%s: %v", client, err)
		}
	}
	if _, err := wait("e", 1); !errors.Is(err, bodymemory.ErrAll) {
		t.Errorf("the total: %v", err)
	}
	other := limit.For("a")
	if err := other.Take(200); err != nil {
		t.Errorf("a request that does not wait: %v", err)
	}
	other.Release()
	all[0].Keep(100)
	if _, err := wait("a", 150); err != nil {
		t.Errorf("after the wait of a request that keeps a part: %v", err)
	}
	if _, err := wait("a", 1); !errors.Is(err, bodymemory.ErrClient) {
		t.Errorf("after another one waits: %v", err)
	}
	for _, m := range all {
		m.Release()
	}
	if _, err := wait("e", 200); err != nil {
		t.Errorf("after all is free: %v", err)
	}
}
