// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/invoker"
)

func BenchmarkInvoke(b *testing.B) {
	typed, err := invoker.New("t", "", func(_ context.Context, in query) (area, error) { return area{Wide: 1}, nil }, nil)
	if err != nil {
		b.Fatal(err)
	}
	arguments := json.RawMessage(`{"city":"Oslo","days":3,"unit":"c","area":{"wide":12,"spots":[{"name":"a"},{"name":"b"}]}}`)
	for _, bench := range []struct {
		name string
		tool invoker.Invoker
		text json.RawMessage
	}{
		{"typed", typed, arguments},
		{"raw", raw(b, weatherSchema), json.RawMessage(`{"city":"Oslo","days":3,"unit":"c"}`)},
		{"raw without schema", raw(b, ``), json.RawMessage(`{"city":"Oslo","days":3,"unit":"c"}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			call := &invoker.Call{Arguments: bench.text}
			for b.Loop() {
				if _, err := bench.tool.Invoke(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRaw makes one tool: a server may have hundreds.
func BenchmarkRaw(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		raw(b, weatherSchema)
	}
}
