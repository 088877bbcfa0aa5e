// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/mcpadapter/server/internal/arrival"
)

// Identify returns a handler that passes the requests of known callers to next, for pages
// and interfaces that this server's callers use besides MCP. It checks a request as
// [Server.Handler] does: Host and Origin (403), a body of a GET or HEAD (400), token (401, 403),
// rate of the client (429), shutdown (503) and concurrent requests (429); a GET or HEAD that accepts
// text/event-stream counts as a stream, and its context ends after an hour, at shutdown, or when
// its token is not valid any longer. Each other GET ends after an hour or with its token, and
// requests with other methods continue. A request whose token [Server.SetAccess] has
// withdrawn when its body arrives is refused too (401): the body cannot be read to its end, and
// what next answers is discarded. The context of a request to next has the trusted values of
// its caller. If no token is configured, each caller is known.
//
// The handler sets no limit to the body and the duration of other requests, and next has to.
func (s *Server) Identify(next http.Handler) http.Handler {
	h := &handler{Server: s}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.logged(w, r, func(w http.ResponseWriter, r *http.Request) { h.identified(w, r, next) })
	})
}

// callerOf identifies the caller of a request and counts the request for its rate. It refuses
// the request and returns nil if it may not be served.
func (h *handler) callerOf(w http.ResponseWriter, r *http.Request, isRead bool) *caller {
	if !h.checkHost(w, r) || !h.checkOrigin(w, r) || isRead && !checkNoBody(w, r) {
		return nil
	}
	from, ok := h.auth.Load().identify(w, r)
	if !ok {
		return nil
	}
	line := accesslog.From(r.Context())
	line.Identified(access.NameFrom(from.ctx))
	line.Method(r.Method + " " + r.URL.Path)
	if wait := h.clients.Arrive(from.client); wait > 0 {
		listening.Abandon(w, r)
		h.later(w, r, http.StatusTooManyRequests, "too many requests", wait)
		return nil
	}
	if h.refusedAtEnd(w, r) {
		return nil
	}
	return from
}

// identified passes a request to next, or refuses it.
func (h *handler) identified(w http.ResponseWriter, r *http.Request, next http.Handler) {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	from := h.callerOf(w, r, isRead)
	if from == nil {
		return
	}
	kind := access.Request
	if isRead && strings.Contains(r.Header.Get("Accept"), "text/event-stream") { // another request does something, whatever it accepts
		kind = access.Stream
	}
	end := h.clients.Begin(from.client, kind)
	if end == nil {
		h.later(w, r, http.StatusTooManyRequests, "too many requests at once", time.Second)
		return
	}
	defer end()
	listening.ServeHTTP(r.Context())
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // not every connection supports it
	deadlined := &deadlineWriter{ResponseWriter: w, control: control, timeout: writeTimeout}
	defer deadlined.start()       // for the rest of the response
	asked := r.Clone(r.Context()) // a handler may change its header
	answer, r := arrival.Checked(deadlined, r, func(w http.ResponseWriter) bool { return h.stillIdentified(w, asked, from) })
	if kind != access.Stream && r.Method != http.MethodGet {
		if _, ok := next.(listening.Finished); ok {
			h.running.enter()
			defer h.running.leave()
			defer h.bound(r, control)() // r is a copy if it has a body
			if h.refusedAtEnd(w, r) {   // Close may have seen none under way
				return
			}
		}
		next.ServeHTTP(answer, r.WithContext(from.ctx))
		return
	}
	ctx, cancel := context.WithCancel(from.ctx)
	defer cancel()
	if kind == access.Stream {
		_ = control.SetReadDeadline(time.Time{})
		defer context.AfterFunc(h.streaming, cancel)()
	}
	defer time.AfterFunc(streamTimeout, cancel).Stop()
	open, leave := h.open(ctx, deadlined, asked, from) // a GET can be a stream whatever it accepts
	defer leave()
	next.ServeHTTP(answer, r.WithContext(open))
}
