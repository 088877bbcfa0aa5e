// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
)

// typical is what most canisters of a history are like.
func typical() canister.Canister {
	return canister.Result{
		Head:       canister.Head{ID: "r-0123456789abcdef", Time: time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC)},
		Invocation: "i-0123456789abcdef",
		Content:    canister.Texts(strings.Repeat("One line of what the tool has found, \"quoted\".\n", 20)),
	}
}

func BenchmarkMarshal(b *testing.B) {
	kinds := map[string]canister.Canister{"typical": typical()}
	for _, c := range golden()[1:9] {
		kinds[string(c.Kind())] = c
	}
	for name, c := range kinds {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line, err := canister.Marshal(c)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(line)))
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	line, err := canister.Marshal(typical())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canister.Unmarshal(line); err != nil {
			b.Fatal(err)
		}
	}
}
