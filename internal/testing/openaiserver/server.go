// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the optional settings of a server.
type Options struct {
	// Addr is the address on which [Start] listens. Empty means a free port of 127.0.0.1.
	Addr string
	// APIKey, if not empty, is the bearer token that every request must have; others get
	// a 401.
	APIKey string
	// Trust turns off the parsing and checking of requests, for benchmarks. Requests must
	// then be compact JSON, and [Step.Expect] is ignored.
	Trust bool
	// Record is how many of the latest requests are kept for [Server.Requests], up to 64
	// MiB of bodies in all. Zero means 1,000; negative means none.
	Record int
	// MaxBody is the largest accepted request body, in bytes. Zero means 64 MiB.
	MaxBody int64
}

const (
	defaultRecord  = 1000
	defaultMaxBody = 64 << 20
	headerTimeout  = 10 * time.Second
	bodyTimeout    = 30 * time.Second // for the body of a request to arrive
	writeTimeout   = 30 * time.Second // for a client to read a piece of a reply
	idleTimeout    = 2 * time.Minute  // between two requests
	// maxStall ends a reply that stalls on purpose but was never closed.
	maxStall = 10 * time.Minute
)

// Server is an OpenAI-compatible server. It is an [http.Handler]; a Server from [Start]
// listens by itself. All methods may be called concurrently.
type Server struct {
	options Options
	steps   []step
	repeat  bool
	created int64
	serial  atomic.Uint64
	journal journal
	bodies  sync.Pool     // of *bytes.Buffer, for request bodies
	done    chan struct{} // closed by Close: ends waits

	provider string // see Script

	url  string
	http *http.Server  // nil unless Start created the server
	gone chan struct{} // closed when http has stopped accepting

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // handlers
}

// step is a prepared Step.
type step struct {
	expect Expect
	before []Reply
	reply  Reply
	served atomic.Int64
}

// New returns a server that answers from script, to be mounted as a handler. Nil options
// mean the defaults.
func New(script Script, options *Options) *Server {
	s := &Server{
		steps:   make([]step, len(script.Steps)),
		repeat:  script.Repeat,
		created: time.Now().Unix(),
		done:    make(chan struct{}),
		bodies:  sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
	if options != nil {
		s.options = *options
	}
	if s.options.Record == 0 {
		s.options.Record = defaultRecord
	}
	if s.options.MaxBody <= 0 {
		s.options.MaxBody = defaultMaxBody
	}
	s.provider = script.Provider
	s.journal.limit = s.options.Record
	for i, from := range script.Steps {
		to := &s.steps[i]
		to.expect, to.reply = from.Expect, prepare(from.Reply)
		for _, reply := range from.Before {
			to.before = append(to.before, prepare(reply))
		}
	}
	return s
}

// prepare renders in advance replies that do not depend on the request.
func prepare(r Reply) Reply {
	if m, ok := r.(Message); ok {
		return render(m)
	}
	return r
}

// Start returns a server that listens. The error is from listening. Nil options mean the
// defaults.
func Start(script Script, options *Options) (*Server, error) {
	s := New(script, options)
	addr := s.options.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("openaiserver: %w", err)
	}
	s.url = "http://" + listener.Addr().String() + "/v1"
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	s.gone = make(chan struct{})
	go func() {
		defer close(s.gone)
		s.http.Serve(listener) // always ends with an error, when closed
	}()
	return s, nil
}

// URL returns the base URL for a client, for example http://127.0.0.1:4242/v1. It is
// empty for a Server from [New].
func (s *Server) URL() string { return s.url }

// Close ends running replies, cuts all connections and waits until the handlers have
// returned. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	var err error
	if first && s.http != nil {
		err = s.http.Close() // first, so that clients see a cut connection and not a proper end
	}
	if first {
		close(s.done)
	}
	if s.http != nil {
		<-s.gone
	}
	s.active.Wait()
	return err
}

// enter registers a handler, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.active.Add(1)
	return true
}

// exchange is one request being answered.
type exchange struct {
	server  *Server
	w       http.ResponseWriter
	ctx     context.Context
	serial  uint64
	request *Request
}

// wait waits for d. It returns false if the client or the server ended first.
func (x *exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	case <-x.server.done:
		return false
	}
}

// ServeHTTP answers POST /v1/chat/completions, /v1/responses and /v1/messages from the
// script. Below /oddity/NAME it answers them with the oddity NAME of the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		return
	}
	defer s.active.Done()
	bounded := newBoundedWriter(w)
	defer bounded.extend() // for data that is still to be sent then
	x := &exchange{server: s, w: bounded, ctx: r.Context(), serial: s.serial.Add(1)}
	w.Header()["X-Request-Id"] = []string{"req_" + strconv.FormatUint(x.serial, 10)}

	buffer := s.bodies.Get().(*bytes.Buffer)
	defer s.bodies.Put(buffer)
	buffer.Reset()
	err := s.readBody(w, r, buffer)
	s.journal.record(r, buffer.Bytes())
	var reply Reply
	failure := s.refuse(r, err)
	if failure == nil {
		reply, failure = s.answer(x, r, buffer.Bytes())
	}
	if failure != nil {
		s.journal.fault(failure.Message)
		reply = *failure
	}
	if f, ok := reply.(Failure); ok {
		kind, _ := apiOf(r)
		f.anthropic = kind == messagesAPI
		reply = f
	}
	reply.play(x)
}

// readBody reads the body of a request within its timeout. After an error it keeps the
// deadline: otherwise net/http would wait for the rest.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, to *bytes.Buffer) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // if the deadline is supported
	if _, err := to.ReadFrom(http.MaxBytesReader(w, r.Body, s.options.MaxBody)); err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	return nil
}

// boundedWriter bounds how long a client may take to read a piece of a reply.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newBoundedWriter(w http.ResponseWriter) *boundedWriter {
	b := &boundedWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	b.extend() // net/http keeps the deadline of the last request
	return b
}

// extend restarts the client's timeout.
func (w *boundedWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // if the deadline is supported
}

// Write implements [io.Writer].
func (w *boundedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuse returns a failure for requests that do not belong to this API.
func (s *Server) refuse(r *http.Request, bodyErr error) *Failure {
	kind, known := apiOf(r)
	key := r.Header.Get("Authorization") == "Bearer "+s.options.APIKey
	if kind == messagesAPI {
		key = r.Header.Get("X-Api-Key") == s.options.APIKey
	}
	switch {
	case !known:
		return &Failure{Status: http.StatusNotFound, Message: fmt.Sprintf("Unknown request URL: %s %s. Please check the URL for typos.", r.Method, r.URL.Path), Code: "unknown_url"}
	case r.Method != http.MethodPost:
		return &Failure{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {http.MethodPost}},
			Message: fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path), Code: "method_not_supported"}
	case s.options.APIKey != "" && !key:
		failure := Unauthorized()
		return &failure
	case errors.Is(bodyErr, os.ErrDeadlineExceeded):
		return &Failure{Status: http.StatusRequestTimeout, Message: fmt.Sprintf("The body did not arrive in %v.", bodyTimeout)}
	case bodyErr != nil:
		return &Failure{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The body could not be read within %d bytes.", s.options.MaxBody)}
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return &Failure{Status: http.StatusUnsupportedMediaType, Message: "Unsupported media type: the body must be application/json.", Code: "unsupported_content_type"}
	}
	return nil
}

// api is one of the APIs that the server speaks.
type api int

const (
	chatAPI      api = iota // OpenAI's Chat Completions
	responsesAPI            // OpenAI's Responses
	messagesAPI             // Anthropic's Messages
)

// apis are the APIs by their paths.
var apis = map[string]api{"/v1/chat/completions": chatAPI, "/v1/responses": responsesAPI, "/v1/messages": messagesAPI}

// apiOf returns the API that a request is for.
func apiOf(r *http.Request) (api, bool) {
	_, path := splitOddity(r.URL.Path)
	found, ok := apis[path]
	return found, ok
}

// parse parses and checks a request.
func (s *Server) parse(r *http.Request, body []byte) (*Request, *Failure) {
	switch kind, _ := apiOf(r); {
	case s.options.Trust:
		return skimRequest(kind, body, r.Header), nil
	case kind == responsesAPI:
		return parseResponses(body, r.Header)
	case kind == messagesAPI:
		return parseMessages(body, r.Header)
	}
	return parseRequest(body, r.Header, s.provider)
}

// answer returns the reply to a request, or its fault.
func (s *Server) answer(x *exchange, r *http.Request, body []byte) (Reply, *Failure) {
	request, failure := s.parse(r, body)
	if failure != nil {
		return nil, failure
	}
	x.request = request
	if name, _ := splitOddity(r.URL.Path); name != "" {
		replay, err := findOddity(request.api, name)
		if err != nil {
			return nil, departed("%v", err)
		}
		return replay, nil
	}
	return s.choose(x.request)
}

// choose returns the reply of the step that the request is at.
func (s *Server) choose(r *Request) (Reply, *Failure) {
	i := r.Position
	if s.repeat && len(s.steps) > 0 {
		i %= len(s.steps)
	}
	if i >= len(s.steps) {
		return nil, departed("step %d: the script ends after %d steps", i, len(s.steps))
	}
	at := &s.steps[i]
	if !s.options.Trust {
		if reason := at.expect.check(r); reason != "" {
			return nil, departed("step %d: %s", i, reason)
		}
	}
	if at.before != nil {
		if n := at.served.Add(1); n <= int64(len(at.before)) {
			return resolve(at.before[n-1], r, i)
		}
	}
	return resolve(at.reply, r, i)
}

// resolve calls a Respond function for its reply.
func resolve(reply Reply, r *Request, step int) (Reply, *Failure) {
	if respond, ok := reply.(Respond); ok && respond != nil {
		reply = respond(r)
	}
	switch reply.(type) {
	case nil, Respond:
		return nil, departed("step %d: the script has no reply", step)
	default:
		return reply, nil
	}
}

// departed returns the failure for a request that does not follow the script.
func departed(format string, args ...any) *Failure {
	return invalid("messages", "script_departed", "the request departs from the script: "+format, args...)
}

// play is never reached: resolve has replaced the function with its reply.
func (Respond) play(x *exchange) { ServerError().play(x) }

var _ http.Handler = (*Server)(nil)
var _ io.Closer = (*Server)(nil)
