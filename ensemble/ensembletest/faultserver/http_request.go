// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

// requestTimeout bounds how long a client may take to send the header of a request, and
// then its body.
const requestTimeout = 30 * time.Second

// ServeHTTP serves one request of streamable HTTP (MCP 2025-11-25, transports).
func (life *httpLife) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !life.enter() {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	defer life.open.Done()
	select {
	case <-life.core.ready:
	case <-r.Context().Done():
	case <-life.core.ctx.Done():
	}
	switch {
	case life.core.hasEnded() || r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	case r.URL.Path != "/mcp" && r.URL.Path != movedPath:
		refuseHTTP(w, http.StatusNotFound, "%s does not exist", r.URL.Path)
	case r.Method == http.MethodPost:
		life.post(w, r)
	case r.Method == http.MethodGet:
		life.listen(w, r)
	case r.Method == http.MethodDelete:
		life.endSession(r.Header.Get(sessionHeader))
	default:
		refuseHTTP(w, http.StatusMethodNotAllowed, "the method %s is not supported", r.Method)
	}
}

// post handles one message.
func (life *httpLife) post(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(requestTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	_ = control.SetReadDeadline(time.Time{}) // the answer may take as long as the fault requires
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, "the request was cut off or is too large")
		return
	}
	message, err := parseRequest(body)
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, "not a message: %v", err)
		return
	}
	session := r.Header.Get(sessionHeader)
	switch {
	case message.Method == "initialize":
		session = life.newSession()
		w.Header().Set(sessionHeader, session)
	case message.Method == "server/discover": // sent before there are sessions
	case session == "":
		refuseHTTP(w, http.StatusBadRequest, "a session is required")
		return
	case life.session(session) == nil:
		refuseHTTP(w, http.StatusNotFound, "unknown session")
		return
	}
	if message.isNotification() || message.Method == "" {
		life.core.notified(message, session)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	x := life.core.admit(message, session, r.URL.Path == movedPath)
	l := newHTTPLink(life, w, r, message.Method == "tools/call")
	x.serve(l)
	l.finish()
}

// listen keeps a stream open.
func (life *httpLife) listen(w http.ResponseWriter, r *http.Request) {
	end := life.session(r.Header.Get(sessionHeader))
	if end == nil {
		refuseHTTP(w, http.StatusNotFound, "unknown session")
		return
	}
	stream := newEventStream(w)
	life.mu.Lock()
	life.streams[stream] = true
	life.mu.Unlock()
	stream.begin() // once the client sees the header, no message is lost
	defer func() {
		life.mu.Lock()
		delete(life.streams, stream)
		life.mu.Unlock()
		stream.finish()
	}()
	select {
	case <-end:
	case <-r.Context().Done():
	case <-stream.broken:
	case <-life.core.ctx.Done():
		stream.cut()
	}
}

// eventStream is a response that is a stream of events.
type eventStream struct {
	broken chan struct{} // closed when the stream was cut

	mu    sync.Mutex
	w     *bufio.Writer
	http  http.ResponseWriter
	begun bool
	ended bool
	muted bool
	isCut bool
}

func newEventStream(w http.ResponseWriter) *eventStream {
	return &eventStream{http: w, w: bufio.NewWriterSize(w, 32<<10), broken: make(chan struct{})}
}

var errStreamEnded = errors.New("the response has ended")

// begin sends the header.
func (e *eventStream) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.write(text(""))
}

func (e *eventStream) message(write writer) error {
	return e.raw(func(w io.Writer) error {
		return errors.Join(text("event: message\ndata: ")(w), write(w), text("\n\n")(w))
	})
}

func (e *eventStream) raw(write writer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.write(write)
}

// write sends bytes; the caller holds the lock.
func (e *eventStream) write(write writer) error {
	if e.muted || e.isCut {
		return nil
	}
	if e.ended {
		return errStreamEnded
	}
	if !e.begun {
		e.begun = true
		e.http.Header().Set("Content-Type", "text/event-stream")
		e.http.Header().Set("Cache-Control", "no-store")
		e.http.WriteHeader(http.StatusOK)
	}
	if err := errors.Join(write(e.w), e.w.Flush()); err != nil {
		return err
	}
	return http.NewResponseController(e.http).Flush()
}

// respond answers with a response that is not a stream. It always returns false, so
// that faults can return its result to end the request.
func (e *eventStream) respond(status int, header map[string]string, body writer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.muted || e.isCut || e.ended {
		return false
	}
	e.begun = true
	for name, value := range header {
		e.http.Header().Set(name, value)
	}
	e.http.WriteHeader(status)
	if body != nil {
		_ = errors.Join(body(e.w), e.w.Flush()) // a client that is gone needs no answer
	}
	return false
}

func (e *eventStream) mute() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.muted = true
}

func (e *eventStream) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isCut {
		e.isCut = true
		close(e.broken)
	}
}

// finish ends the response, normally or not. Nothing is written after it.
func (e *eventStream) finish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.isCut {
		panic(http.ErrAbortHandler) // net/http cuts the connection
	}
}

// httpLink is the response to a request.
type httpLink struct {
	stream  *eventStream
	life    *httpLife
	request *http.Request
	streams bool // answers come as events
}

func newHTTPLink(life *httpLife, w http.ResponseWriter, r *http.Request, streams bool) *httpLink {
	return &httpLink{stream: newEventStream(w), life: life, request: r, streams: streams}
}

// message sends an event. If this client has gone, it goes to the streams that clients
// keep open.
func (l *httpLink) message(write writer) error {
	if l.request.Context().Err() != nil {
		return l.life.core.standing.message(write)
	}
	return l.stream.message(write)
}

// answer sends the answer to a call as an event, and other answers as plain JSON unless
// events came before.
func (l *httpLink) answer(write writer) error {
	l.stream.mu.Lock()
	begun := l.stream.begun
	l.stream.mu.Unlock()
	if l.streams || begun {
		return l.message(write)
	}
	l.respond(http.StatusOK, map[string]string{"Content-Type": "application/json"}, write)
	return nil
}

func (l *httpLink) raw(write writer) error { return l.stream.raw(write) }
func (l *httpLink) mute()                  { l.stream.mute() }
func (l *httpLink) cut()                   { l.stream.cut() }

var _ responder = (*httpLink)(nil)

func (l *httpLink) respond(status int, header map[string]string, body writer) bool {
	return l.stream.respond(status, header, body)
}

func (l *httpLink) done() <-chan struct{} { return l.request.Context().Done() }

func (l *httpLink) after(f func()) {
	kept := l.request.Context().Value(connectionKey{}).(*connection)
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	kept.after = append(kept.after, f)
}

// finish ends the response. Without an answer the stream ends normally; if the server
// died, it is cut.
func (l *httpLink) finish() {
	if l.life.core.hasEnded() {
		l.stream.cut()
	}
	l.stream.mu.Lock()
	if !l.stream.begun && !l.stream.isCut {
		_ = l.stream.write(text(""))
	}
	l.stream.mu.Unlock()
	l.stream.finish()
}
