// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
)

// server is one life of a server, over either transport.
type server struct {
	script    *Script
	transport transport
	counter   *counter
	recorder  *recorder
	stderr    io.Writer
	struck    func(Entry) // may be nil
	// expire forgets the HTTP sessions; nil over stdio.
	expire func()
	// elsewhere is a URL of another origin; empty over stdio.
	elsewhere string

	ctx   context.Context // ends with the life
	stop  context.CancelFunc
	ready chan struct{} // closed when the faults at the start have been applied

	// standing receives messages that belong to no request.
	standing link

	mu         sync.Mutex
	status     int // the exit status
	ended      bool
	stubborn   bool // the end of stdin does not end the life
	deaf       bool // reading has stopped
	mistrusted bool // TLS uses the untrusted certificate
	inflight   map[string]chan struct{}
}

// newServer begins a life.
func newServer(script *Script, via transport, c *counter, r *recorder) *server {
	s := &server{
		script: script, transport: via, counter: c, recorder: r, stderr: io.Discard,
		ready: make(chan struct{}), inflight: make(map[string]chan struct{}),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// start applies the faults at the start, and then lets requests in.
func (s *server) start() {
	s.record(Entry{Kind: KindStarted})
	o := &occasion{server: s, place: "start", link: s.standing}
	if o.strike(s.rulesAt("start", "", false)) {
		close(s.ready)
	}
}

// end ends the life; only the first status counts.
func (s *server) end(status int) {
	s.mu.Lock()
	if !s.ended {
		s.ended, s.status = true, status
	}
	s.mu.Unlock()
	s.stop()
}

func (s *server) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// set sets a flag, which is never reset.
func (s *server) set(state *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*state = true
}

func (s *server) is(state *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *state
}

// record writes to the ledger. A server that cannot write its ledger ends, since tests
// rely on it.
func (s *server) record(e Entry) bool {
	if err := s.recorder.add(e); err != nil {
		fmt.Fprintln(s.stderr, err)
		s.end(1)
		return false
	}
	return true
}

// rulesAt counts the occasion and returns the rules that strike at it. Redirected
// requests are not occasions for redirects.
func (s *server) rulesAt(place Place, tool string, moved bool) []Rule {
	var struck []Rule
	for i := range s.script.Rules {
		r := &s.script.Rules[i]
		redirect := r.Fault == "redirect-same-host" || r.Fault == "redirect-other-host"
		if r.At != place || (r.Tool != "" && r.Tool != tool) || (moved && redirect) {
			continue
		}
		yes, err := s.counter.strikes(i, r)
		if err != nil {
			fmt.Fprintln(s.stderr, err)
			s.end(1)
			return nil
		}
		if yes {
			struck = append(struck, *r)
		}
	}
	return struck
}

// exchange is a request that is being served.
type exchange struct {
	occasion
	session string
	moved   bool // sent to the target of redirects
	rules   []Rule
	gone    chan struct{} // closed when the client cancelled
}

// admit accepts a request. It must be called in the order of the requests, so that the
// count of occasions is exact.
func (s *server) admit(r *request, session string, moved bool) *exchange {
	x := &exchange{session: session, moved: moved, gone: make(chan struct{})}
	x.server, x.request = s, r
	x.cancelled = x.gone
	s.mu.Lock()
	s.inflight[session+" "+string(r.ID)] = x.gone
	s.mu.Unlock()
	switch r.Method {
	case "initialize":
		s.record(Entry{Kind: KindInitialize, Request: r.ID, Session: session, Text: r.Params.ProtocolVersion})
		x.place = "initialize"
	case "tools/list":
		if r.Params.Cursor != "" {
			return x
		}
		s.record(Entry{Kind: KindList, Request: r.ID, Session: session})
		x.place = "list"
	case "resources/read":
		x.place = "read"
	case "tools/call":
		s.record(x.entry(KindCall))
		x.place = "before-effect"
	default:
		return x
	}
	x.rules = s.rulesAt(x.place, r.Params.Name, moved)
	return x
}

// entry returns the ledger entry of the call.
func (x *exchange) entry(kind Kind) Entry {
	p := &x.request.Params
	return Entry{
		Kind: kind, Tool: p.Name, Key: p.Meta.Key, Request: x.request.ID,
		Token: p.Meta.Token, Session: x.session, Arguments: p.Arguments,
	}
}

// serve serves the request over a link.
func (x *exchange) serve(l link) {
	x.link = l
	defer x.forget()
	if x.place == "before-effect" && !x.strike(x.rules) {
		return
	}
	if x.answer = x.perform(); x.answer == nil {
		return
	}
	x.answer.id = x.request.ID
	switch x.place {
	case "before-effect":
		x.place = "after-effect"
		x.rules = x.server.rulesAt("after-effect", x.request.Params.Name, x.moved)
		fallthrough
	case "initialize", "list", "read":
		if !x.strike(x.rules) {
			return
		}
	}
	x.finish()
}

// finish sends the answer, and then handles the occasion that follows it.
func (x *exchange) finish() {
	if x.listing != nil {
		x.answer.result = x.listing.write
	}
	_ = x.answer.send(x.link) // a client that is gone needs no answer
	next, tool := Place(""), ""
	switch x.place {
	case "list":
		next = "after-list"
	case "after-effect":
		next, tool = "between-calls", x.request.Params.Name
	default:
		return
	}
	s := x.server
	x.link.after(func() {
		o := &occasion{server: s, place: next, link: s.standing}
		o.strike(s.rulesAt(next, tool, x.moved))
	})
}

func (x *exchange) forget() {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := x.session + " " + string(x.request.ID); s.inflight[key] == x.gone {
		delete(s.inflight, key)
	}
}

// notified handles a notification, or an unexpected answer.
func (s *server) notified(r *request, session string) {
	if r.Method != "notifications/cancelled" {
		return
	}
	s.record(Entry{Kind: KindCancelled, Request: r.Params.RequestID, Session: session, Text: r.Params.Reason})
	key := session + " " + string(r.Params.RequestID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone := s.inflight[key]; gone != nil {
		close(gone)
		delete(s.inflight, key)
	}
}

// protocols are the revisions that the server speaks, the newest last.
var protocols = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// perform executes the request and returns the answer, or nil for no answer.
func (x *exchange) perform() *answer {
	switch r := x.request; r.Method {
	case "initialize":
		version := r.Params.ProtocolVersion
		if !slices.Contains(protocols, version) {
			version = protocols[len(protocols)-1]
		}
		return &answer{result: text(`{"protocolVersion":` + quote(version) +
			`,"capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true},"logging":{}},"serverInfo":{"name":"faultserver","version":"1"}}`)}
	case "ping", "logging/setLevel":
		return &answer{result: text("{}")}
	case "tools/list":
		return x.list()
	case "tools/call":
		return x.call()
	case "resources/list":
		return resources()
	case "resources/templates/list":
		return &answer{result: text(`{"resourceTemplates":[]}`)}
	case "resources/read":
		return x.read()
	default: // including server/discover: clients fall back to initialize
		return failf(codeMethodNotFound, "unknown method %q", r.Method)
	}
}

// list answers tools/list.
func (x *exchange) list() *answer {
	x.listing = &listing{tools: toolDefinitions()}
	if cursor := x.request.Params.Cursor; cursor != "" && !x.listing.turn(cursor) {
		return failf(codeInvalidParams, "unknown page %q", cursor)
	}
	return &answer{result: x.listing.write}
}

// call answers tools/call.
func (x *exchange) call() *answer {
	run, ok := toolFunctions()[x.request.Params.Name]
	if !ok {
		return failf(codeInvalidParams, "unknown tool %q", x.request.Params.Name)
	}
	arguments := x.request.Params.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return run(x, arguments)
}
