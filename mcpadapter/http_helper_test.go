// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"sync"
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
