// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/envelope"
	"github.com/consort-go/consort/mcpadapter/server/internal/shared"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"

	writeTimeout        = 30 * time.Second // for one write of a response
	notificationTimeout = 5 * time.Second  // the same for a notification: the SDK notifies the clients one after the other
	streamTimeout       = time.Hour        // of a stream that waits for notifications
)

// Handler returns a handler that serves streamable HTTP (MCP 2025-11-25,
// basic/transports § Streamable HTTP; SEP-2575 for protocol 2026-07-28) at any path it
// is mounted at, and the document of Options.ResourceMetadata at its well-known
// path.
//
// Requests are checked in this order, and each check has its status: Host and Origin
// (403), method (405), a body where none is allowed (400), token (401, 403), rate of
// the client (429 with Retry-After), time to arrive (408), memory of all requests (429,
// 503), size (413), valid message (400), shutdown (503), concurrent requests of the
// client (429), session (404). Refusing a request before it has arrived closes the
// connection. A stream that waits for notifications ends within 10 s after its token
// has expired, and after an hour in any case; clients then open a new one.
//
// The handler sets deadlines for the body of a request and for each write of a
// response. The http.Server that it is mounted in controls the phases before that and
// the number of connections: set ReadHeaderTimeout, IdleTimeout and MaxHeaderBytes
// there, and limit the connections of its listener. [Server.ServeListener] does all of
// this.
func (s *Server) Handler() http.Handler {
	sdk := func(*http.Request) *mcp.Server { return s.sdk }
	h := &handler{Server: s}
	h.stateless = mcp.NewStreamableHTTPHandler(h.sdkFor, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	})
	h.stateful = mcp.NewStreamableHTTPHandler(sdk, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	})
	return h
}

type handler struct {
	*Server
	stateless, stateful http.Handler
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.logged(w, r, h.serve) }

// logged serves a request and writes its line of the access log, if there is one.
func (h *handler) logged(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if h.access == nil {
		serve(w, r)
		return
	}
	line, counted := accesslog.Begin(r.Method), &countedResponse{ResponseWriter: w}
	defer func() {
		line.End(h.access, "http", hostnames.WithoutPort(r.RemoteAddr), counted.bytes, counted.statusOf(r))
	}()
	serve(counted, r.WithContext(accesslog.With(r.Context(), line)))
}

// serve answers a request, or refuses it.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	if !h.checkHost(w, r) {
		return
	}
	auth := h.auth.Load()
	if m := auth.metadata; m.isServed() && strings.HasPrefix(r.URL.Path, wellKnown) {
		serveMetadata(w, r, m)
		return
	}
	if !h.checkOrigin(w, r) || !checkMethod(w, r) {
		return
	}
	from, ok := auth.identify(w, r)
	if !ok {
		return
	}
	if from.profile = r.PathValue(profileValue); !h.selects.reaches(auth, from) {
		listening.Refuse(w, r, http.StatusNotFound, notServed)
		return
	}
	line := accesslog.From(r.Context())
	line.Identified(access.NameFrom(from.ctx))
	if wait := h.clients.Arrive(from.client); wait > 0 {
		listening.Abandon(w, r)
		h.later(w, r, http.StatusTooManyRequests, "too many requests", wait)
		return
	}
	memory := h.bodies.For(from.client)
	from.memory = shared.New(memory.Release)
	defer from.memory.Release()
	e, ok := h.readMessage(w, r, from, memory)
	if !ok || !h.stillIdentified(w, r, from) || e.Batch && !h.admitBatch(w, r, from, e.Size) {
		return
	}
	line.Method(methodOf(r, e))
	if e.Batch { // its requests have no lines of their own
		from.ctx = accesslog.With(from.ctx, nil)
	}
	what := costOf(r, e)
	if what != access.Message && h.refusedAtEnd(w, r) { // calls under way may still get their answers
		return
	}
	end := h.clients.Begin(from.client, what)
	if end == nil {
		h.later(w, r, http.StatusTooManyRequests, "too many requests at once", time.Second)
		return
	}
	from.place = shared.New(end)
	defer from.place.Release()
	h.dispatch(w, r, from, e, what == access.Stream)
}

// admitBatch counts each message of a batch like a single request.
func (h *handler) admitBatch(w http.ResponseWriter, r *http.Request, from *caller, size int) bool {
	wait, most := h.clients.ArriveTogether(from.client, size-1) // the first was counted on arrival
	switch {
	case most > 0:
		writeRefusal(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the batch has %d messages, and a client may send at most %d at once", size, most))
		return false
	case wait > 0:
		h.later(w, r, http.StatusTooManyRequests, "too many requests", wait)
		return false
	}
	from.slot = h.clients.Slot(from.client)
	return true
}

func costOf(r *http.Request, e envelope.Envelope) access.Kind {
	switch {
	case r.Method == http.MethodGet || e.Method == "subscriptions/listen":
		return access.Stream
	case r.Method == http.MethodPost && !e.Batch && (!e.Call || e.Method == ""):
		return access.Message
	}
	return access.Request
}

// later refuses a request that the client may retry.
func (h *handler) later(w http.ResponseWriter, r *http.Request, status int, why string, wait time.Duration) {
	logevent.Log(r.Context(), h.refusals, zapcore.InfoLevel, "a request is delayed", logevent.ServeRequestRefused, zap.String("reason", why), zap.Int("status", status), zap.String("from", hostnames.WithoutPort(r.RemoteAddr)))
	w.Header().Set("Retry-After", secondsText(wait))
	http.Error(w, why, status)
}

// secondsText returns the value of the header Retry-After, at least a second.
func secondsText(wait time.Duration) string {
	return strconv.Itoa(int(math.Ceil(max(wait, time.Second).Seconds())))
}

// dispatch passes a checked request to the SDK. It clears the deadlines of the
// http.Server, so that the request may take as long as it needs.
func (h *handler) dispatch(w http.ResponseWriter, r *http.Request, from *caller, e envelope.Envelope, isStream bool) {
	listening.ServeHTTP(r.Context())
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // not every connection supports it
	_ = control.SetWriteDeadline(time.Time{})
	id := r.Header.Get(sessionHeader)
	isModern := h.options.Stateless || r.Header.Get(protocolHeader) >= wire.Modern || id == "" && saysModern(r)
	if !isModern && id != "" {
		done, ok := h.sessions.use(id, from.owner())
		if !ok {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		defer done()
	} else if !isModern && r.Method == http.MethodPost && (e.Batch || e.Method != "initialize" && e.Method != "ping") {
		http.Error(w, "the header Mcp-Session-Id is missing: a session begins with initialize", http.StatusBadRequest)
		return
	}
	from.asks = !isModern
	if h.options.Telemetry != nil {
		from.route = routeOfHTTP(r)
		from.route.Client = access.MeasuredFrom(from.ctx)
		if e.Call && !e.Batch {
			from.number = numberIn(r.Body)
		}
	}
	// The SDK uses the context of a session's first request for all its requests, so
	// this context carries no values.
	ctx, cancel := context.WithCancel(bare{r.Context()})
	defer cancel()
	if !isStream {
		h.answering.enter()
		defer h.answering.leave()
	} else {
		defer context.AfterFunc(h.streaming, cancel)()
		defer time.AfterFunc(streamTimeout, cancel).Stop()
	}
	asked := r // with the values of the program
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	key := strconv.FormatUint(h.serial.Add(1), 36)
	r.Header[requestKey] = []string{key}
	h.requests.Store(key, from)
	defer h.requests.Delete(key)
	deadlined := &deadlineWriter{ResponseWriter: w, control: control, timeout: writeTimeout}
	defer deadlined.start() // for the rest of the response
	if isStream {
		deadlined.timeout = notificationTimeout
		open, end := h.open(ctx, deadlined, asked, from)
		defer end()
		r = r.WithContext(open)
	}
	if isModern {
		h.stateless.ServeHTTP(&eventWriter{ResponseWriter: deadlined}, r)
	} else {
		h.stateful.ServeHTTP(deadlined, r)
	}
}

// bare is a context without the values of its parent, except those of net/http.
type bare struct{ context.Context }

func (b bare) Value(key any) any {
	if key == http.LocalAddrContextKey || key == http.ServerContextKey {
		return b.Context.Value(key)
	}
	return nil
}

// saysModern reports whether the body belongs to the newest protocol although the
// header does not say so. Such a request is refused in the form of that protocol.
func saysModern(r *http.Request) bool {
	body, ok := r.Body.(*readBody)
	return ok && bytes.Contains(body.text, []byte(`"`+mcp.MetaKeyProtocolVersion+`"`))
}

// writeRefusal writes a JSON-RPC error for a request whose id is not known.
func writeRefusal(w http.ResponseWriter, status int, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(refusalText(code, message))
}

func refusalText(code int64, message string) []byte {
	text, _ := json.Marshal(message)
	o := jsonobject.New()
	o.Text("jsonrpc", "2.0")
	o.Raw("id", []byte("null"))
	o.Raw("error", []byte(`{"code":`+strconv.FormatInt(code, 10)+`,"message":`+string(text)+`}`))
	return o.End()
}

// deadlineWriter limits how long a client may take to read each write of a response.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (w *deadlineWriter) start() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // not every connection supports it
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.start()
	return w.ResponseWriter.Write(p)
}

// FlushError implements Flush for http.ResponseController. It clears the deadline after
// the flush: in HTTP/2, the deadline would end an idle stream.
func (w *deadlineWriter) FlushError() error {
	err := w.control.Flush()
	_ = w.control.SetWriteDeadline(time.Time{})
	return err
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// eventWriter writes an error as an event if events were written before. The SDK answers some
// errors with an HTTP status (MCP 2026-07-28, SEP-2575), also when a stream of events has begun:
// there it is too late for a status, and clients ignore anything but events.
type eventWriter struct {
	http.ResponseWriter
	begun bool // the response has a status
	late  bool // the next write is an error that comes after the status
}

// WriteHeader implements [http.ResponseWriter].
func (w *eventWriter) WriteHeader(status int) {
	if w.late = w.begun; !w.late {
		w.begun = true
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *eventWriter) Write(p []byte) (int, error) {
	w.begun = true
	if !w.late {
		return w.ResponseWriter.Write(p)
	}
	w.late = false
	if _, err := fmt.Fprintf(w.ResponseWriter, "event: message\ndata: %s\n\n", p); err != nil { // p is JSON without line ends
		return 0, err
	}
	return len(p), nil
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// checkHost refuses requests for unknown host names. A web page whose own name resolves
// to this machine could send them (DNS rebinding; MCP 2025-11-25, basic/transports §
// Security Warning).
func (h *handler) checkHost(w http.ResponseWriter, r *http.Request) bool {
	auth := h.auth.Load()
	if len(auth.hosts) == 0 && auth.isRequired() || hostnames.Allow(auth.hosts, r.Host) {
		return true // without hosts: a web page does not have the token
	}
	logevent.Log(r.Context(), h.refusals, zapcore.WarnLevel, "a request is refused: its Host is not a name of the server", logevent.ServeRequestRefused, zap.String("host", textcut.Bytes(r.Host, wire.MaxQuoted)))
	listening.Refuse(w, r, http.StatusForbidden, "the server does not have this name")
	return false
}

// checkOrigin refuses the requests of foreign web pages. Responses to the server's own
// pages and to allowed origins get the headers that browsers require (CORS).
func (h *handler) checkOrigin(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if !hostnames.AllowPage(r, h.auth.Load().origins) {
		logevent.Log(r.Context(), h.refusals, zapcore.WarnLevel, "a request is refused: its Origin is not allowed", logevent.ServeRequestRefused, zap.String("origin", textcut.Bytes(origins[0], wire.MaxQuoted)))
		listening.Refuse(w, r, http.StatusForbidden, "the origin is not allowed")
		return false
	}
	w.Header().Set("Access-Control-Expose-Headers", sessionHeader+", "+protocolHeader+", WWW-Authenticate, Retry-After")
	return !allowPage(w, r, origins[0], "GET, POST, DELETE")
}

// allowPage sets the headers that let a browser show the response to a page. If the
// request is a preflight, it also writes the response and returns true (Fetch Standard,
// § CORS protocol).
func allowPage(w http.ResponseWriter, r *http.Request, origin, methods string) (answered bool) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	if r.Method != http.MethodOptions {
		return false
	}
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	header.Set("Access-Control-Max-Age", "600")
	if r.ContentLength != 0 {
		listening.Abandon(w, r)
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

func checkMethod(w http.ResponseWriter, r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
		return r.Method == http.MethodPost || checkNoBody(w, r)
	}
	w.Header().Set("Allow", "GET, POST, DELETE")
	listening.Refuse(w, r, http.StatusMethodNotAllowed, "method not allowed")
	return false
}

// checkNoBody refuses a body where none is allowed, because the server would wait for
// it.
func checkNoBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	listening.Refuse(w, r, http.StatusBadRequest, "only the method POST has a body")
	return false
}

// serveMetadata serves the metadata document, without authentication (RFC 9728, § 3).
func serveMetadata(w http.ResponseWriter, r *http.Request, m *ResourceMetadata) {
	if u, err := url.Parse(m.url()); err != nil || r.URL.Path != u.Path && r.URL.Path != wellKnown {
		listening.Refuse(w, r, http.StatusNotFound, "there is no such document")
		return
	}
	if allowPage(w, r, "*", "GET") { // clients in browsers send custom headers
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		listening.Refuse(w, r, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	if !checkNoBody(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(m.document())
}
