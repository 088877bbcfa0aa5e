// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
)

// switcher is a handler that can be changed while it serves.
type switcher struct {
	mu      sync.Mutex
	current http.Handler
}

func newSwitch(h http.Handler) *switcher { return &switcher{current: h} }

func (s *switcher) set(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = h
}

func (s *switcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.current
	s.mu.Unlock()
	h.ServeHTTP(w, r)
}

// openScripted opens a connection to s.
func openScripted(t *testing.T, s *mcptest.Scripted) ensemble.Connection {
	t.Helper()
	return mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
}
