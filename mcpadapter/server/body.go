// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/bodymemory"
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/mcpadapter/server/internal/arrival"
	"github.com/consort-go/consort/mcpadapter/server/internal/envelope"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// readBody is a request body that has been read into memory.
type readBody struct {
	bytes.Reader
	text []byte
}

func (*readBody) Close() error { return nil }

// readMessage reads and inspects the message of a request, if it has one. If not ok, it
// has written the response. Requests that are being read have a limit too, because each
// takes memory before its kind is known.
func (h *handler) readMessage(w http.ResponseWriter, r *http.Request, from *caller, memory *bodymemory.Memory) (e envelope.Envelope, ok bool) {
	if r.Method != http.MethodPost {
		return e, true
	}
	end := h.clients.Begin(from.client, access.Body)
	if end == nil {
		listening.Abandon(w, r)
		h.later(w, r, http.StatusTooManyRequests, "too many requests at once", time.Second)
		return e, false
	}
	defer end()
	text, err := h.readText(w, r, memory)
	if err != nil {
		h.refuseBody(w, r, err)
		return e, false
	}
	e, err = envelope.Read(text)
	if err != nil {
		logevent.Log(r.Context(), h.refusals, zapcore.InfoLevel, "a request is refused: its message is not valid", logevent.ServeRequestRefused, zap.String("from", hostnames.WithoutPort(r.RemoteAddr)), zap.Error(err))
		writeRefusal(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the message is refused: "+err.Error())
		return e, false
	}
	body := &readBody{text: text}
	body.Reset(text)
	r.Body, from.size = body, int64(len(text))
	return e, true
}

// lastAnswer is how long a message of a session, or a request that must finish, may take to
// arrive while the server shuts down.
const lastAnswer = 2 * time.Second

// bound limits how long the body of a request may take to arrive while the server shuts down.
// It removes the limit afterwards, because a connection that times out ends the context of its
// request. unbound must be called when the handler has returned.
func (h *handler) bound(r *http.Request, control *http.ResponseController) (unbound func()) {
	if r.ContentLength == 0 {
		return func() {}
	}
	unbound = h.limitReads(control, lastAnswer)
	r.Body = arrival.Then(r.Body, func() { unbound(); _ = control.SetReadDeadline(time.Time{}) })
	return unbound
}

// limitReads limits reads, once the server shuts down, to so much time. No limit is set after
// stop has returned.
func (h *handler) limitReads(control *http.ResponseController, patience time.Duration) (stop func()) {
	interrupted := make(chan struct{})
	cancel := context.AfterFunc(h.taking, func() {
		defer close(interrupted)
		_ = control.SetReadDeadline(time.Now().Add(patience))
	})
	return sync.OnceFunc(func() {
		if !cancel() {
			<-interrupted
		}
	})
}

// readText reads the body of a request until its deadline, or until the server shuts
// down.
func (h *handler) readText(w http.ResponseWriter, r *http.Request, memory *bodymemory.Memory) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(listening.RequestTimeout)) // not every connection supports it
	patience := time.Duration(0)
	if r.Header.Get(sessionHeader) != "" { // it may answer a question of a call under way
		patience = lastAnswer
	}
	defer h.limitReads(control, patience)()
	return memory.Read(http.MaxBytesReader(w, r.Body, h.options.MaxBody), r.ContentLength, h.options.MaxBody)
}

// refusedAtEnd reports whether the server shuts down, and then refuses the request.
func (h *handler) refusedAtEnd(w http.ResponseWriter, r *http.Request) bool {
	closing := h.taking.Err() != nil
	if closing {
		h.later(w, r, http.StatusServiceUnavailable, "the server is shutting down", 5*time.Second)
	}
	return closing
}

// refuseBody answers a request whose body was not read completely.
func (h *handler) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	listening.Abandon(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, bodymemory.ErrClient):
		h.later(w, r, http.StatusTooManyRequests, err.Error(), time.Second)
	case errors.Is(err, bodymemory.ErrAll):
		h.later(w, r, http.StatusServiceUnavailable, err.Error(), time.Second)
	case errors.As(err, &large):
		http.Error(w, "the request has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", http.StatusRequestEntityTooLarge)
	case h.refusedAtEnd(w, r):
	case errors.Is(err, os.ErrDeadlineExceeded):
		logevent.Log(r.Context(), h.refusals, zapcore.InfoLevel, "a request did not arrive in time", logevent.ServeRequestRefused, zap.Int("status", http.StatusRequestTimeout), zap.String("from", hostnames.WithoutPort(r.RemoteAddr)))
		http.Error(w, "the request did not arrive in "+listening.RequestTimeout.String(), http.StatusRequestTimeout)
	default:
		http.Error(w, "the request did not arrive", http.StatusBadRequest)
	}
}
