// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/raced"
)

// flood is how many bytes of junk a server writes.
var flood = int64(raced.Fewer(3 << 20))

// scene is one fault at one place over one transport.
type scene struct {
	*testing.T
	client
	stdio  *stdioClient // or nil
	http   *httpClient  // or nil
	server *Server      // over HTTP
	script Script
	place  Place
	id     string // of the request that is struck; empty between requests
	stream *seen  // that is kept open over HTTP
}

// hit is where the fault shows.
func (s *scene) hit() *seen {
	if s.id == "" && s.stream != nil {
		return s.stream
	}
	return s.seen()
}

// gone waits for the death of the server.
func (s *scene) gone() {
	s.Helper()
	if s.stdio != nil {
		if got := s.stdio.waitExit(); got != 7 {
			s.Errorf("exit status %d, want 7", got)
		}
		return
	}
	select {
	case <-s.server.Died():
	case <-time.After(patience):
		s.Fatal("the server lives")
	}
	s.server.Stop() // waits
	s.http.send(initialize)
	s.seen().must(s, "refused", func() bool { return s.seen().err != nil })
}

// alive asks for a sign of life after the fault.
func (s *scene) alive() {
	s.Helper()
	s.send(ping)
	s.seen().must(s, "an answer to ping", answered(s.seen(), "9"))
}

// claim is the promised effect of a fault.
type claim struct {
	rule Rule // its parameters
	// check examines the observations after the request was sent.
	check func(s *scene)
	// stops tells that a fault before the effect keeps the effect away.
	stops bool
	// noAnswer tells that the request is never answered as it should be.
	noAnswer bool
}

func claims() map[Fault]claim {
	all := map[Fault]claim{
		"die": {Rule{Status: 7, Text: "last words"}, func(s *scene) {
			s.gone()
			if s.stdio != nil {
				eventually(s.T, "last words", func() bool { return s.stdio.stderr.String() == "last words\n" })
			}
		}, true, true},
		"silence":      {Rule{}, func(s *scene) {}, true, true},
		"slow":         {Rule{Delay: 50 * time.Millisecond}, func(s *scene) {}, false, false},
		"answer-twice": {Rule{}, mustSee("two answers", func(s *scene, g *seen) bool { return g.answers[s.id] == 2 }), false, false},
		"answer-late":  {Rule{}, checkLate, false, false},
		"wrong-id": {Rule{}, mustSee("another answer", func(s *scene, g *seen) bool {
			return len(g.answers) > g.answers["1"]+g.answers["2"] && g.answers[s.id] == 0
		}), false, true},
		"broken-json": {Rule{}, mustSee("a broken answer", func(s *scene, g *seen) bool {
			return g.broken == 1
		}), false, true},
		"half-then-die": {Rule{Status: 7}, func(s *scene) {
			s.hit().must(s, "half a line and the end", func() bool { return s.hit().partial > 20 && s.hit().ended })
			s.gone()
		}, false, true},
		"half-then-silence": {Rule{}, func(s *scene) {
			s.hit().must(s, "half a line", func() bool { return s.hit().partial > 20 })
			s.hit().never(s, "an end", func() bool { return s.hit().ended })
			if s.http != nil {
				s.alive()
			}
		}, false, true},
		"junk":               {Rule{}, mustSee("junk", func(_ *scene, g *seen) bool { return g.junk >= 200 && g.junk < 1000 }), false, false},
		"flood-stdout":       {Rule{Size: flood}, mustSee("junk", func(_ *scene, g *seen) bool { return int64(g.junk) > flood-1<<17 }), false, false},
		"endless-line":       {Rule{Size: 5 << 20}, checkEndless, true, true},
		"list-changed-storm": {Rule{}, mustSee("a storm", sees("notifications/tools/list_changed", 1000)), false, false},
		"progress-storm":     {Rule{Count: 500}, mustSee("a storm", sees("notifications/progress", 500)), false, false},
		"log-storm":          {Rule{Count: 700}, mustSee("a storm", sees("notifications/message", 700)), false, false},
	}
	for _, part := range []map[Fault]claim{listClaims(), resourceClaims(), processClaims(), httpClaims()} {
		for f, c := range part {
			all[f] = c
		}
	}
	return all
}

func mustSee(what string, f func(*scene, *seen) bool) func(*scene) {
	return func(s *scene) {
		s.Helper()
		s.hit().must(s, what, func() bool { return f(s, s.hit()) })
	}
}

func sees(method string, count int) func(*scene, *seen) bool {
	return func(_ *scene, g *seen) bool { return g.methods[method] == count }
}

func checkLate(s *scene) {
	g := s.hit()
	g.never(s, "an answer before it is cancelled", answered(g, s.id))
	s.send(cancelCall)
	g.must(s, "an answer", answered(g, s.id))
}

func checkEndless(s *scene) {
	g := s.hit()
	g.must(s, "a long line", func() bool { return g.partial >= 5<<20 })
	if g.look(func() bool { return g.ended }) {
		s.Error("the connection ended")
	}
}

func resourceClaims() map[Fault]claim {
	return map[Fault]claim{
		"hanging-read": {Rule{}, func(s *scene) { s.alive() }, false, true},
		"vanished-resource": {Rule{}, mustSee("an error", func(s *scene, g *seen) bool {
			return g.answers[s.id] == 1 && bytes.Contains(g.last, []byte("-32002"))
		}), false, false},
		"huge-resource": {Rule{Size: 1 << 20}, mustSee("a large answer", func(s *scene, g *seen) bool {
			return g.answers[s.id] == 1 && len(g.last) > 1<<20
		}), false, false},
		"resources-changed-storm": {Rule{}, mustSee("a storm", sees("notifications/resources/list_changed", 1000)), false, false},
	}
}

func listClaims() map[Fault]claim {
	last := func(what string, f func(line []byte) bool) func(*scene) {
		return mustSee(what, func(s *scene, g *seen) bool { return g.answers[s.id] == 1 && f(g.last) })
	}
	return map[Fault]claim{
		"huge-schema": {Rule{}, last("a huge schema", func(line []byte) bool {
			return bytes.Contains(line, []byte(`"huge_schema"`)) && len(line) > 1<<20 && bytes.Contains(line, []byte(`"echo"`))
		}), false, false},
		"deep-schema": {Rule{}, last("a deep schema", func(line []byte) bool {
			return bytes.Count(line, []byte(`{"a":{`)) == 10_000
		}), false, false},
		"many-tools": {Rule{}, last("many tools", func(line []byte) bool {
			return bytes.Count(line, []byte(`"inputSchema"`)) == 5007
		}), false, false},
		"endless-pages": {Rule{}, func(s *scene) { s.pages(`"nextCursor":"endless-%d"`, `page_%d"`) }, false, false},
		"cursor-loop":   {Rule{}, func(s *scene) { s.pages(`"nextCursor":"loop"`, `"echo"`) }, false, false},
		"huge-result": {Rule{}, mustSee("a huge result", func(s *scene, g *seen) bool {
			return g.answers[s.id] == 1 && g.bytes > 64<<20
		}), false, false},
		"deep-result": {Rule{}, last("a deep result", func(line []byte) bool {
			return bytes.Count(line, []byte(`{"a":`)) == 10_000
		}), false, false},
		"unknown-content": {Rule{}, last("a hologram", func(line []byte) bool {
			return bytes.Contains(line, []byte(`"type":"hologram"`)) && bytes.Contains(line, []byte(`"type":"text"`))
		}), false, false},
	}
}

// pages turns some pages.
func (s *scene) pages(cursor, content string) {
	fill := func(pattern string, page int) []byte {
		if strings.Contains(pattern, "%d") {
			pattern = fmt.Sprintf(pattern, page)
		}
		return []byte(pattern)
	}
	s.hit().must(s, "the first page", answered(s.hit(), "2"))
	for page := 1; page <= 3; page++ {
		next := fill(cursor, page)
		g := s.hit()
		if !g.look(func() bool { return bytes.Contains(g.last, next) }) {
			s.Fatalf("page %d does not have %s", page, next)
		}
		key := strings.Trim(strings.SplitN(string(next), ":", 2)[1], `"`)
		s.send(request(20+page, "tools/list", fmt.Sprintf(`{"cursor":%q}`, key)))
		g = s.seen()
		g.must(s, "the next page", answered(g, fmt.Sprint(20+page)))
		if want := fill(content, page); !g.look(func() bool { return bytes.Contains(g.last, want) }) {
			s.Fatalf("page %d lacks %s: %s", page+1, want, g.last)
		}
	}
}

func httpClaims() map[Fault]claim {
	status := func(code int, header ...string) claim {
		return claim{Rule{Delay: 1500 * time.Millisecond}, mustSee("the status", func(_ *scene, g *seen) bool {
			if g.status != code {
				return false
			}
			for i := 0; i < len(header); i += 2 {
				if !strings.HasPrefix(g.header.Get(header[i]), header[i+1]) {
					return false
				}
			}
			return true
		}), true, true}
	}
	return map[Fault]claim{
		"unauthorized":        status(http.StatusUnauthorized, "WWW-Authenticate", "Bearer"),
		"forbidden":           status(http.StatusForbidden),
		"not-found":           status(http.StatusNotFound),
		"too-many-requests":   status(http.StatusTooManyRequests, "Retry-After", "2"),
		"internal-error":      status(http.StatusInternalServerError),
		"unavailable":         status(http.StatusServiceUnavailable, "Retry-After", "2"),
		"redirect-same-host":  status(http.StatusTemporaryRedirect, "Location", "/moved/mcp"),
		"redirect-other-host": status(http.StatusTemporaryRedirect, "Location", "http://localhost:"),
		"html":                status(http.StatusOK, "Content-Type", "text/html"),
		"wrong-content-type": {Rule{}, mustSee("plain text", func(s *scene, g *seen) bool {
			return g.header.Get("Content-Type") == "text/plain" && g.answers[s.id] == 1
		}), false, false},
		"drop-stream": {Rule{}, mustSee("half an event, cut", func(_ *scene, g *seen) bool {
			return g.events && g.partial > 20 && g.cut
		}), true, true},
		"expire-session": {Rule{}, func(s *scene) {
			if s.id != "" {
				mustSee("404", func(_ *scene, g *seen) bool { return g.status == http.StatusNotFound })(s)
			}
			s.stream.must(s, "the end of the stream", func() bool { return s.stream.ended && !s.stream.cut })
			s.send(ping)
			s.seen().must(s, "404", func() bool { return s.seen().status == http.StatusNotFound })
			s.http.session = ""
			s.send(initialize)
			s.seen().must(s, "a session", answered(s.seen(), "1"))
			s.alive()
		}, true, true},
		"self-signed": {Rule{}, nil, false, false}, // see TestSelfSigned
	}
}

// TestFaults: each fault has its promised effect at each place, over each transport,
// occurs once, and the tool's effect happens or not as the place promises.
func TestFaults(t *testing.T) {
	all := claims()
	for _, info := range Faults() {
		c, ok := all[info.Fault]
		if !ok {
			t.Errorf("there is no test of %s", info.Fault)
		}
		if c.check == nil {
			continue
		}
		for transport, places := range map[string][]Place{"stdio": info.Stdio, "http": info.HTTP} {
			for _, place := range places {
				t.Run(fmt.Sprintf("%s/%s/%s", info.Fault, transport, place), func(t *testing.T) {
					t.Parallel()
					c.run(t, info.Fault, transport, place)
				})
			}
		}
	}
}

func (c claim) run(t *testing.T, fault Fault, transport string, place Place) {
	if fault == "stop-reading" && place == "start" {
		c.noAnswer = true
	}
	rule := c.rule
	rule.Fault, rule.At = fault, place
	s := &scene{T: t, place: place, script: Script{Dir: t.TempDir(), Rules: []Rule{rule}}}
	if fault == "ignore-term" || fault == "stop-reading" { // whose effect is not seen otherwise
		s.script.Rules = append(s.script.Rules, Rule{Fault: "flood-stderr", At: place, Size: 1})
	}
	begin := time.Now()
	if transport == "stdio" {
		s.stdio = startStdio(t, s.script)
		s.client = s.stdio
	} else {
		server, err := StartHTTP(s.script, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		s.server, s.http = server, newHTTPClient(t, server.URL())
		s.client = s.http
	}
	s.walk()
	if s.id != "" && !c.noAnswer && fault != "answer-late" {
		s.seen().must(t, "the answer", answered(s.seen(), s.id))
	}
	if fault == "slow" && time.Since(begin) < rule.Delay {
		t.Errorf("it took %v, want %v", time.Since(begin), rule.Delay)
	}
	c.check(s)
	if c.noAnswer && s.id != "" {
		s.hit().never(t, "the answer", answered(s.hit(), s.id))
	}
	s.checkLedger(fault, c.stops)
}

// walk goes to the place where the fault strikes.
func (s *scene) walk() {
	s.Helper()
	s.id = "1"
	s.send(initialize)
	if s.place == "start" || s.place == "initialize" {
		return
	}
	s.seen().must(s, "initialize", answered(s.seen(), "1"))
	s.send(initialized)
	if s.http != nil {
		s.stream = s.http.listen()
	}
	s.id = "2"
	s.send(listTools)
	if s.place == "list" {
		return
	}
	if s.place == "after-list" {
		s.seen().must(s, "tools/list", answered(s.seen(), "2"))
		s.id = ""
		return
	}
	s.seen().must(s, "tools/list", answered(s.seen(), "2"))
	if s.place == "read" {
		s.id = "4"
		s.send(readNote)
		return
	}
	s.id = "3"
	s.send(callEffect)
	if s.place == "between-calls" {
		s.seen().must(s, "tools/call", answered(s.seen(), "3"))
		s.id = ""
	}
}

func (s *scene) checkLedger(fault Fault, stops bool) {
	s.Helper()
	want := 0
	switch s.place {
	case "after-effect", "between-calls":
		want = 1
	case "before-effect":
		if !stops {
			want = 1
		}
	}
	ledger := readLedger(s.T, s.script.Dir)
	if got := len(ledger.Effects().With("k")); got != want {
		s.Errorf("%d effects, want %d: %v", got, want, ledger)
	}
	if struck := ledger.Of(KindStruck); len(struck) != len(s.script.Rules) || struck[0].Fault != fault || struck[0].Place != s.place {
		s.Errorf("struck: %v", struck)
	}
}

func readLedger(t *testing.T, dir string) Ledger {
	t.Helper()
	ledger, err := ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

func TestFaultsAreListedOnce(t *testing.T) {
	var names []Fault
	for _, info := range Faults() {
		if slices.Contains(names, info.Fault) {
			t.Errorf("%s is listed twice", info.Fault)
		}
		names = append(names, info.Fault)
		if info.About == "" || len(info.Stdio)+len(info.HTTP) == 0 {
			t.Errorf("%s says too little", info.Fault)
		}
	}
}
