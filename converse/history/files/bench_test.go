// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/files"
)

func sized(id string, size int) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(strings.Repeat("x", size))}
}

// Each writer appends canisters of 1 KiB to a conversation of its own; bare is
// what the disk allows: a write and a sync, to one file.
func BenchmarkAppend(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		file, err := os.Create(filepath.Join(b.TempDir(), "lines"))
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()
		b.SetBytes(1024)
		line := []byte(strings.Repeat("x", 1024))
		for b.Loop() {
			if _, err := file.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprint(writers, "-writers"), func(b *testing.B) {
			store, err := files.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(1024)
			b.ResetTimer()
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range (b.N + writers - 1 - w) / writers {
						if err := store.Append(context.Background(), fmt.Sprint("talk", w), i, sized(fmt.Sprint("c", i), 960)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// A conversation of 1,000 canisters, its bytes alone, and its last ten.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	store, err := files.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	var list []canister.Canister
	for i := range 1000 {
		list = append(list, sized(fmt.Sprint("c", i), 500))
	}
	if err := store.Append(b.Context(), "talk", 0, list...); err != nil {
		b.Fatal(err)
	}
	b.Run("bytes", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(filepath.Join(dir, "talk", "history.jsonl")); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, after := range map[string]int{"1000": 0, "last-10": 990} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				count := 0
				for _, err := range store.Read(context.Background(), "talk", after) {
					if err != nil {
						b.Fatal(err)
					}
					count++
				}
				if count != 1000-after {
					b.Fatal(count)
				}
			}
		})
	}
}
