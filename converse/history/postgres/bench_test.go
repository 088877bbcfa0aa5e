// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

func BenchmarkStore(b *testing.B) {
	for _, connections := range []int{4, 32} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			historytest.BenchStore(b, func(b *testing.B) func() (history.Store, error) {
				dsn := pgtest.DSN(b)
				return func() (history.Store, error) {
					return postgres.Open(context.Background(), dsn, &postgres.Options{Connections: connections})
				}
			})
		})
	}
}

// benchOpen returns two stores of one database, as of two machines.
func benchOpen(b *testing.B) (one, two *postgres.Store) {
	b.Helper()
	dsn := pgtest.DSN(b)
	for _, s := range []**postgres.Store{&one, &two} {
		var err error
		if *s, err = postgres.Open(context.Background(), dsn, nil); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { (*s).Close() })
	}
	return one, two
}

func says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// BenchmarkSearch searches 20,000 canisters of 1 KiB for a word that one has.
func BenchmarkSearch(b *testing.B) {
	s, _ := benchOpen(b)
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 22)
	const canisters, conversations = 200, 100
	for i := range conversations {
		list := make([]canister.Canister, canisters)
		for n := range list {
			list[n] = says(fmt.Sprint(n), fmt.Sprint(text, i*canisters+n, "."))
		}
		if err := s.Append(b.Context(), fmt.Sprint("talk", i), 0, list...); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		found := 0
		for _, err := range s.List(b.Context(), history.Filter{Text: "12345."}) {
			if found++; err != nil {
				b.Fatal(err)
			}
		}
		if found != 1 {
			b.Fatalf("found %d", found)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/(conversations*canisters*float64(len(text))/(1<<20)), "ms/MiB")
}

// BenchmarkWatch measures how long after an append another machine knows.
func BenchmarkWatch(b *testing.B) {
	s, other := benchOpen(b)
	n := 0
	var began time.Time
	var all time.Duration
	for length, err := range other.Watch(b.Context(), "talk") {
		if err != nil {
			b.Fatal(err)
		}
		if length < n {
			continue
		}
		if n > 0 {
			all += time.Since(began)
		}
		if !b.Loop() {
			break
		}
		began = time.Now()
		if err := s.Append(b.Context(), "talk", n, says(fmt.Sprint(n), "on we go")); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(all.Seconds()*1e6/float64(max(n, 1)), "us/append+told")
}

// BenchmarkNotify measures how long a payload takes to another machine.
func BenchmarkNotify(b *testing.B) {
	s, other := benchOpen(b)
	payload := []byte(`{"turn":"u1","attempt":1,"index":17,"text":" dull"}`)
	for got, err := range other.Listen(b.Context(), "talk") {
		if err != nil || got == nil && b.N > 1 {
			b.Fatal(got, err)
		}
		if !b.Loop() {
			break
		}
		if err := s.Notify(b.Context(), "talk", payload); err != nil {
			b.Fatal(err)
		}
	}
}
