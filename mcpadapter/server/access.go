// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
)

// SetAccess changes who may call the server, what each caller may use, and how often: it
// takes Authenticate, Token, Tokens, Certificate, Trusted, Select, Profile, Finds, Invoke,
// ResourceMetadata, Hosts, Origins, Rate, Burst and Parallel of the options, and ignores the rest.
// The next request is checked with them. Whether connections need a certificate does not
// change. Requests under way continue, with the values that they have, and
// clients are notified of lists that are no longer the same for them. A stream that waits
// for notifications ends if its token is not valid any longer, or belongs to another
// caller, or its profile is gone; a comment in the stream tells the client.
func (s *Server) SetAccess(options *Options) {
	full := options.withDefaults()
	auth := newAuthentication(&full, s.refusals)
	before := s.auth.Swap(auth)
	s.clients.SetLimits(access.Limits{Rate: full.Rate, Burst: full.Burst, Parallel: full.Parallel})
	s.parked.mu.Lock()
	s.parked.perClient = full.Parallel
	s.parked.mu.Unlock()
	s.waiting.Recheck()
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
		return false
	}
	from.by = auth
	return true
}

var errAnotherCaller = errors.New("the token belongs to another caller now")

// open adds a stream. Its context ends when its client may not have it any longer, and when the
// caller calls end, which tells the client why.
func (h *handler) open(ctx context.Context, w http.ResponseWriter, r *http.Request, from *caller) (of context.Context, end func()) {
	of, remove := h.waiting.Open(ctx, func() error { return h.mayContinue(r, from) })
	if h.auth.Load() != from.by { // SetAccess has not seen the stream
		h.waiting.Recheck()
	}
	return of, func() {
		if why, ok := openstreams.Reason(of); ok && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			_, _ = fmt.Fprintf(w, ": this stream ends: %s\n\n", why) // a comment
		}
		remove()
	}
}

var (
	errNotValid   = errors.New("the token is not valid any longer")
	errOutOfReach = errors.New("its path is no longer served to this client")
)

// mayContinue returns an error if the client of a stream may not have it any longer.
func (h *handler) mayContinue(r *http.Request, from *caller) error {
	auth := h.auth.Load()
	_, _, identity, err := auth.check(r)
	away, isFailure := errors.AsType[*invoker.Failure](err)
	switch {
	case isFailure && away.Code == invoker.Unavailable:
		return err
	case err != nil:
		return errNotValid
	case identity != from.identity:
		return errAnotherCaller
	case !h.selects.reaches(auth, from):
		return errOutOfReach
	}
	return nil
}
