// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
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

// BenchmarkAppend compares appends of 32 writers that are committed together
// with those that are committed each on its own, in turns on one disk.
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

// BenchmarkLoad compares reading a conversation of 1,000 canisters with reading
// a file of their lines.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s, file := open(b), filepath.Join(b.TempDir(), "lines")
			var list []canister.Canister
			for i := range 1000 {
				text := fmt.Sprint(i, strings.Repeat(" word", size/5))
				list = append(list, canister.User{Head: canister.Head{ID: fmt.Sprint("c", i)}, Content: canister.Texts(text)})
			}
			if err := s.Append(b.Context(), "talk", 0, list...); err != nil {
				b.Fatal(err)
			}
			var lines bytes.Buffer
			if err := canister.Encode(&lines, list...); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			var store, decode, raw time.Duration
			for b.Loop() {
				began := time.Now()
				n := 0
				for _, err := range s.Read(b.Context(), "talk", 0) {
					if n++; err != nil {
						b.Fatal(err)
					}
				}
				store += time.Since(began)
				began = time.Now()
				text, _ := os.ReadFile(file)
				raw += time.Since(began)
				for _, err := range canister.Decode(bytes.NewReader(text)) {
					if n--; err != nil {
						b.Fatal(err)
					}
				}
				decode += time.Since(began)
				if n != 0 {
					b.Fatalf("%d canisters more than lines", n)
				}
			}
			b.ReportMetric(store.Seconds()*1000/float64(b.N), "ms/load")
			b.ReportMetric(raw.Seconds()*1000/float64(b.N), "ms/file")
			b.ReportMetric(decode.Seconds()*1000/float64(b.N), "ms/file+decode")
		})
	}
}

// BenchmarkTail reads the last five canisters of conversations of different
// lengths.
func BenchmarkTail(b *testing.B) {
	s := open(b)
	for _, length := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("length=%d", length), func(b *testing.B) {
			conversation := fmt.Sprint("talk", length)
			list := make([]canister.Canister, length)
			for i := range list {
				list[i] = says(fmt.Sprint("c", i), "Is it raining?")
			}
			if info, _ := s.Info(b.Context(), conversation); info.Length == 0 {
				if err := s.Append(b.Context(), conversation, 0, list...); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if lines, err := read(b.Context(), s, conversation, length-5); err != nil || len(lines) != 5 {
					b.Fatal(len(lines), err)
				}
			}
		})
	}
}
