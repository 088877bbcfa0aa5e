// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
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
func (h *handler) readMessage(w http.ResponseWriter, r *http.Request, from *caller, memory *bodyMemory) (e envelope.Envelope, ok bool) {
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
		logevent.Log(r.Context(), h.refusals, zapcore.InfoLevel, "a request is refused: its message is not valid", logevent.ServeRequestRefused, zap.String("from", hostOf(r.RemoteAddr)), zap.Error(err))
		writeRefusal(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the message is refused: "+err.Error())
		return e, false
	}
	body := &readBody{text: text}
	body.Reset(text)
	r.Body = body
	return e, true
}

// lastAnswer is how long a message of a session may take to arrive while the server
// shuts down.
const lastAnswer = 2 * time.Second

// readText reads the body of a request until its deadline, or until the server shuts
// down.
func (h *handler) readText(w http.ResponseWriter, r *http.Request, memory *bodyMemory) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(listening.RequestTimeout)) // not every connection supports it
	interrupted := make(chan struct{})
	patience := time.Duration(0)
	if r.Header.Get(sessionHeader) != "" { // it may answer a question of a call under way
		patience = lastAnswer
	}
	stop := context.AfterFunc(h.taking, func() {
		defer close(interrupted)
		_ = control.SetReadDeadline(time.Now().Add(patience))
	})
	text, err := memory.read(http.MaxBytesReader(w, r.Body, h.options.MaxBody), r.ContentLength, h.options.MaxBody)
	if !stop() {
		<-interrupted
	}
	return text, err
}

// refuseBody answers a request whose body was not read completely.
func (h *handler) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	listening.Abandon(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, errClientMemory):
		h.later(w, r, http.StatusTooManyRequests, err.Error(), time.Second)
	case errors.Is(err, errAllMemory):
		h.later(w, r, http.StatusServiceUnavailable, err.Error(), time.Second)
	case errors.As(err, &large):
		http.Error(w, "the request has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", http.StatusRequestEntityTooLarge)
	case h.closing.Load():
		h.later(w, r, http.StatusServiceUnavailable, "the server is shutting down", 5*time.Second)
	case errors.Is(err, os.ErrDeadlineExceeded):
		logevent.Log(r.Context(), h.refusals, zapcore.InfoLevel, "a request did not arrive in time", logevent.ServeRequestRefused, zap.Int("status", http.StatusRequestTimeout), zap.String("from", hostOf(r.RemoteAddr)))
		http.Error(w, "the request did not arrive in "+listening.RequestTimeout.String(), http.StatusRequestTimeout)
	default:
		http.Error(w, "the request did not arrive", http.StatusBadRequest)
	}
}

// bodies bounds the memory that the bodies of all requests under way use. One client
// gets a fourth of it.
type bodies struct {
	most, mostPerClient int64

	mu   sync.Mutex
	held int64
	of   map[string]int64 // by client
}

var (
	errClientMemory = errors.New("the requests of this client take too much memory at once")
	errAllMemory    = errors.New("the requests of all clients take too much memory at once")
)

// newBodies returns a bound of most bytes, or of one body of the largest size if that
// is more.
func newBodies(most, largest int64) *bodies {
	most = max(most, largest+1)
	return &bodies{most: most, mostPerClient: max(most/4, largest+1), of: make(map[string]int64)}
}

// bodyMemory is the memory that the body of one request uses.
type bodyMemory struct {
	of     *bodies
	client string
	held   int64
}

// take reserves n more bytes, or returns the reason why it cannot.
func (m *bodyMemory) take(n int64) error {
	b := m.of
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[m.client]+n > b.mostPerClient:
		return errClientMemory
	case b.held+n > b.most:
		return errAllMemory
	}
	b.held += n
	b.of[m.client] += n
	m.held += n
	return nil
}

// release returns all reserved memory.
func (m *bodyMemory) release() {
	b := m.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= m.held
	if b.of[m.client] -= m.held; b.of[m.client] == 0 {
		delete(b.of, m.client)
	}
	m.held = 0
}

// firstRead is the size of the first buffer: a client must send this much before the
// server allocates a larger one.
const firstRead = 16 << 10

// read reads a body of length bytes, or of at most largest if length is negative. The
// buffer grows by doubling, so that a client that announces much and sends little uses
// little memory.
func (m *bodyMemory) read(body io.Reader, length, largest int64) ([]byte, error) {
	if length < 0 || length > largest {
		length = largest
	}
	end := length + 1 // the last byte is for the end of the body
	var text []byte
	for {
		if len(text) == cap(text) {
			if int64(cap(text)) == end {
				end = largest + 1 // the body is longer than announced
			}
			size := min(max(2*int64(cap(text)), firstRead), end)
			if err := m.take(size - int64(cap(text))); err != nil {
				return nil, err
			}
			grown := make([]byte, len(text), size)
			copy(grown, text)
			text = grown
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
