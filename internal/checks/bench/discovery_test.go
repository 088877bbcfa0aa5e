// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
)

// BenchmarkDiscovery measures how long it takes to list the tools of servers over HTTP,
// each of which delays every answer: a single one with 400 ms, and 50 with 8 to 400 ms.
func BenchmarkDiscovery(b *testing.B) {
	for _, n := range []int{1, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var addresses []string
			for i := range n {
				addresses = append(addresses, slowServer(b, time.Duration(50-i)*8*time.Millisecond))
			}
			for b.Loop() {
				var ensembles []*ensemble.Ensemble
				for i, address := range addresses {
					ensembles = append(ensembles, ensemble.New(fmt.Sprint("server", i), mcpadapter.HTTP(address, nil), nil))
				}
				roster, err := ensemble.NewRoster(ensembles...)
				if err != nil {
					b.Fatal(err)
				}
				catalog, err := roster.Catalog(b.Context())
				if err != nil || len(catalog.Tools()) != n {
					b.Fatal(len(catalog.Tools()), catalog.Away(), err)
				}
				b.StopTimer()
				if err := roster.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// slowServer serves a tool and waits before each answer; it returns its URL.
func slowServer(b *testing.B, wait time.Duration) string {
	b.Helper()
	srv := server.New(nil, &server.Options{Tools: []invoker.Invoker{ensembletest.Returns("tool", "answer")}})
	handler := srv.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			time.Sleep(wait)
		}
		handler.ServeHTTP(w, r)
	}))
	b.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			b.Error(err)
		}
		web.Close()
	})
	return web.URL
}
