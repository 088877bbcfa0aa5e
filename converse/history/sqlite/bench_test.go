// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
)

// kibibyte is a canister whose JSON form has 1 KiB, more or less.
func kibibyte(id string) canister.Canister {
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 22)
	return canister.User{Head: canister.Head{ID: id, Time: time.Unix(1, 0)}, Content: canister.Texts(text[:950])}
}

// appendFor has writers append to a conversation each, for a while, and returns
// the appends for each second.
func appendFor(t testing.TB, s *Store, writers int, duration time.Duration) float64 {
	var all atomic.Int64
	var wait sync.WaitGroup
	began := time.Now()
	for i := range writers {
		wait.Go(func() {
			conversation := fmt.Sprintf("talk%d", i)
			for n := 0; time.Since(began) < duration; n++ {
				if err := s.Append(context.Background(), conversation, n, kibibyte(fmt.Sprintf("c%d", n))); err != nil {
					t.Error(err)
					return
				}
				all.Add(1)
			}
		})
	}
	wait.Wait()
	return float64(all.Load()) / time.Since(began).Seconds()
}

// BenchmarkAppend compares appends of 32 writers that are committed together with appends
// that are committed individually, alternating on one disk.
func BenchmarkAppend(b *testing.B) {
	var together, each float64
	for range b.N {
		for group, rate := range map[int]*float64{1: &each, 64: &together} {
			s, err := Open(filepath.Join(b.TempDir(), "talks.db"), &Options{Group: group})
			if err != nil {
				b.Fatal(err)
			}
			*rate += appendFor(b, s, 32, time.Second)
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(each/float64(b.N), "single/s")
	b.ReportMetric(together/float64(b.N), "grouped/s")
	b.ReportMetric(together/each, "ratio")
}

func BenchmarkStore(b *testing.B) {
	historytest.BenchStore(b, func(b *testing.B) func() (history.Store, error) {
		path := filepath.Join(b.TempDir(), "talks.db")
		return func() (history.Store, error) { return Open(path, nil) }
	})
}
