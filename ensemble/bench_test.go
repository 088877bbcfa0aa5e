// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// BenchmarkInvoke measures what an ensemble adds to a call; the bare function is the
// comparison.
func BenchmarkInvoke(b *testing.B) {
	tool := ensembletest.Returns("tool", "answer")
	call := &invoker.Call{ID: "1", Progress: func(invoker.Progress) {}}
	measure := func(name string, target invoker.Invoker) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := target.Invoke(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	settings := ensemble.New("settings", ensemble.LocalSource(tool), &ensemble.Options{Settings: 1})
	defer settings.Close(context.Background())
	plain := ensemble.Local("plain", tool)
	defer plain.Close(context.Background())
	measure("function", tool)
	measure("local", toolOf(b, plain, "tool"))
	measure("settings", toolOf(b, settings, "tool"))
	b.Run("parallel", func(b *testing.B) {
		tool := toolOf(b, plain, "tool")
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				tool.Invoke(b.Context(), call)
			}
		})
	})
}

// BenchmarkCatalog measures a catalog that did not change.
func BenchmarkCatalog(b *testing.B) {
	var ensembles []*ensemble.Ensemble
	for i := range 10 {
		var names []string
		for j := range 50 {
			names = append(names, fmt.Sprintf("tool_%d_%d", i, j))
		}
		ensembles = append(ensembles, answering(fmt.Sprint("ensemble", i), names...))
	}
	roster := newRoster(b, ensembles...)
	catalog, err := roster.Catalog(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("unchanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			roster.Catalog(b.Context())
		}
	})
	b.Run("nearest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			catalog.Nearest("ensemble3__tol_3_7", 3)
		}
	})
}
