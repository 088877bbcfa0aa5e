// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
)

// SetAccess changes who may call the server, what each caller may use, and how often: it
// takes Authenticate, Token, Tokens, Certificate, Trusted, Select, Profile, Finds, Invoke,
// ResourceMetadata, Hosts, Origins, Rate, Burst and Parallel of the options, and ignores the rest.
// The next request is checked with them. Whether connections need a certificate does not
// change. Requests under way continue, with the values that they have, and
// clients are notified of lists that are no longer the same for them. A stream that waits
// for notifications ends if its token is not valid any longer, or belongs to another
// caller, or its profile is gone.
func (s *Server) SetAccess(options *Options) {
	full := options.withDefaults()
	auth := newAuthentication(&full, s.refusals)
	before := s.auth.Swap(auth)
	s.clients.SetLimits(access.Limits{Rate: full.Rate, Burst: full.Burst, Parallel: full.Parallel})
	for _, w := range s.waiting.list() {
		w.recheck(auth)
		if !s.selects.reaches(auth, w.from) {
			w.end()
		}
	}
	if before.isSelective() || auth.isSelective() {
		s.listeners.recompare(toolList, resourceList, promptList)
	}
}

// stillIdentified refuses a request whose token was revoked, or belongs to another caller,
// because SetAccess ran while its body arrived.
func (h *handler) stillIdentified(w http.ResponseWriter, r *http.Request, from *caller) bool {
	auth := h.auth.Load()
	if auth == from.by {
		return true
	}
	_, _, identity, err := auth.check(r)
	if err == nil && identity != from.identity {
		err = errAnotherCaller
	}
	if err != nil {
		auth.refuse(w, r, err)
	}
	return err == nil
}

var errAnotherCaller = errors.New("the token belongs to another caller now")

// wait adds a stream until remove is called.
func (h *handler) wait(w *waitingStream) (remove func()) {
	forget := h.waiting.add(w)
	if auth := h.auth.Load(); auth != w.from.by { // SetAccess has not seen the stream
		w.recheck(auth)
	}
	if !w.from.by.isRequired() {
		return forget
	}
	checks, over := time.NewTicker(recheckEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-checks.C:
				w.recheck(h.auth.Load())
			case <-over:
				return
			}
		}
	}()
	return func() {
		checks.Stop()
		close(over)
		forget()
	}
}

// recheckEvery is how often the token of a waiting stream is checked again: it may have
// expired.
const recheckEvery = 30 * time.Second

// waitingStreams are the HTTP streams that wait for notifications.
type waitingStreams struct {
	mu sync.Mutex
	of map[*waitingStream]struct{}
}

// waitingStream is one stream.
type waitingStream struct {
	request *http.Request
	from    *caller
	end     context.CancelFunc
}

// recheck ends the stream unless the caller may still have it.
func (w *waitingStream) recheck(auth *authentication) {
	_, _, identity, err := auth.check(w.request)
	if away, ok := errors.AsType[*invoker.Failure](err); ok && away.Code == invoker.Unavailable {
		return // the token cannot be checked now
	}
	if err != nil || identity != w.from.identity {
		w.end()
	}
}

func (s *waitingStreams) add(w *waitingStream) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[*waitingStream]struct{})
	}
	s.of[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.of, w)
	}
}

func (s *waitingStreams) list() []*waitingStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.of))
}
