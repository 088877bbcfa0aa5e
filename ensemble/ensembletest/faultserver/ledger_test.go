// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func TestReadLedger(t *testing.T) {
	dir := t.TempDir()
	if ledger := readLedger(t, dir); len(ledger) != 0 {
		t.Errorf("an empty directory: %v", ledger)
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "ledger.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const effect = `{"kind":"effect","tool":"effect","key":"i","arguments":{"key":"k"}}` + "\n"
	write(effect + `{"kind":"call","arguments":{"key":"k"}}` + "\n" + `{"kind":"effect","argu`)
	ledger := readLedger(t, dir)
	if len(ledger) != 2 || len(ledger.Effects()) != 1 || len(ledger.With("k")) != 2 || len(ledger.With("j")) != 0 {
		t.Errorf("got %v", ledger)
	}
	if e := ledger.Effects()[0]; e.Key != "i" || e.Tool != "effect" {
		t.Errorf("got %+v", e)
	}
	write(effect + "nonsense\n")
	if _, err := ReadLedger(dir); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := ReadLedger(filepath.Join(dir, "ledger.jsonl")); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// TestLedgerHoldsWhatCameWithACall: the ledger records the members of a call, and its
// cancellation.
func TestLedgerHoldsWhatCameWithACall(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := connect(t, transport, Script{Dir: dir})
			c.send(callEffect)
			c.seen().must(t, "an answer", answered(c.seen(), "3"))
			c.send(request(4, "tools/call", `{"name":"wait","_meta":{"progressToken":"w"}}`))
			waiting := c.seen()
			waiting.must(t, "progress", func() bool { return waiting.methods["notifications/progress"] == 1 })
			c.send(strings.ReplaceAll(cancelCall, "3", "4"))
			eventually(t, "the cancellation", func() bool { return len(readLedger(t, dir).Of(KindCancelled)) == 1 })
			waiting.never(t, "an answer", answered(waiting, "4"))

			ledger := readLedger(t, dir)
			call, effect, cancelled := ledger.Of(KindCall)[0], ledger.Effects()[0], ledger.Of(KindCancelled)[0]
			if call.Key != "i" || string(call.Token) != `"t"` || string(call.Request) != "3" || string(call.Arguments) != `{"key":"k"}` || call.PID == 0 {
				t.Errorf("call %+v", call)
			}
			if effect.Key != "i" || effect.Tool != "effect" || effect.Time.IsZero() {
				t.Errorf("effect %+v", effect)
			}
			if string(cancelled.Request) != "4" || cancelled.Text != "enough" || (cancelled.Session != "") != (transport == "http") {
				t.Errorf("cancelled %+v", cancelled)
			}
			if got := ledger.Of(KindInitialize); len(got) != 1 || got[0].Text != "2025-11-25" {
				t.Errorf("initialize %+v", got)
			}
		})
	}
}

// TestOccasions: nth and times are counted per rule, of its tool alone, and on
// over the lives of a server.
func TestOccasions(t *testing.T) {
	refuse := func(nth, times int, tool string) Rule {
		return Rule{Fault: "internal-error", At: "before-effect", Nth: nth, Times: times, Tool: tool}
	}
	for name, test := range map[string]struct {
		rules []Rule
		want  string // of calls of effect: x for refused
	}{
		"first":         {[]Rule{refuse(0, 0, "")}, "x....."},
		"third":         {[]Rule{refuse(3, 0, "")}, "..x..."},
		"twice":         {[]Rule{refuse(2, 2, "")}, ".xx..."},
		"always":        {[]Rule{refuse(0, Always, "")}, "xxxxxx"},
		"from the 4th":  {[]Rule{refuse(4, Always, "")}, "...xxx"},
		"another tool":  {[]Rule{refuse(1, Always, "echo")}, "......"},
		"this tool":     {[]Rule{refuse(2, 1, "effect")}, ".x...."},
		"several rules": {[]Rule{refuse(1, 1, ""), refuse(5, 1, "")}, "x...x."},
	} {
		for _, where := range []string{"in memory", "on disk"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				script := Script{Rules: test.rules}
				if where == "on disk" {
					script.Dir = t.TempDir()
				}
				server := startHTTP(t, script, nil)
				var got strings.Builder
				for i := range 6 {
					switch { // a life ends in between
					case i == 3 && where == "in memory":
						if err := server.Restart(); err != nil {
							t.Fatal(err)
						}
					case i == 3:
						_ = server.Close()
						server = startHTTP(t, script, nil)
					}
					got.WriteByte(callOnce(t, server))
				}
				if got.String() != test.want {
					t.Errorf("got %s, want %s", &got, test.want)
				}
			})
		}
	}
}

// callOnce calls effect over a session of its own.
func callOnce(t *testing.T, server *Server) byte {
	t.Helper()
	c := newHTTPClient(t, server.URL())
	hello(t, c)
	c.send(callEffect)
	g := c.seen()
	g.must(t, "a response", func() bool { return g.status >= 400 || g.answers["3"] > 0 })
	if g.look(func() bool { return g.status == 500 }) {
		return 'x'
	}
	return '.'
}

// TestOccasionsOfManyProcesses: of calls of several processes with one
// directory exactly as many are struck as the rule says.
func TestOccasionsOfManyProcesses(t *testing.T) {
	script := Script{Dir: t.TempDir(), Rules: []Rule{{Fault: "unknown-content", At: "after-effect", Nth: 3, Times: 5}}}
	var work sync.WaitGroup
	for range 4 {
		c := connect(t, "stdio", script)
		work.Go(func() {
			for i := range 10 {
				c.send(request(100+i, "tools/call", `{"name":"effect","arguments":{"key":"k"}}`))
			}
			g := c.seen()
			if !g.within(patience, func() bool { return len(g.answers) == 12 }) {
				t.Error("not all calls were answered")
			}
		})
	}
	work.Wait()
	ledger := readLedger(t, script.Dir)
	if got := len(ledger.Of(KindStruck)); got != 5 {
		t.Errorf("struck %d times, want 5", got)
	}
	if got := len(ledger.Effects()); got != 40 {
		t.Errorf("%d effects, want 40", got)
	}
}

// TestDieOnceThenBehave: over processes, because the count is on the disk.
func TestDieOnceThenBehave(t *testing.T) {
	script := Script{Dir: t.TempDir(), Rules: []Rule{{Fault: "die", At: "before-effect", Status: 3}}}
	first := startStdio(t, script)
	hello(t, first)
	first.send(callEffect)
	if got := first.waitExit(); got != 3 {
		t.Errorf("status %d, want 3", got)
	}
	second := startStdio(t, script)
	hello(t, second)
	second.send(callEffect)
	second.seen().must(t, "an answer", answered(second.seen(), "3"))
	ledger := readLedger(t, script.Dir)
	if len(ledger.Effects()) != 1 || len(ledger.Of(KindCall)) != 2 || len(ledger.Of(KindStarted)) != 2 {
		t.Errorf("ledger %v", ledger)
	}
	if a, b := ledger.Of(KindStarted)[0].PID, ledger.Of(KindStarted)[1].PID; a == b {
		t.Errorf("both starts have the id %d", a)
	}
}

// connect starts a server and says hello.
func connect(t *testing.T, transport string, script Script) client {
	t.Helper()
	var c client
	if transport == "stdio" {
		c = startStdio(t, script)
	} else {
		c = newHTTPClient(t, startHTTP(t, script, nil).URL())
	}
	hello(t, c)
	return c
}

func hello(t *testing.T, c client) {
	t.Helper()
	c.send(initialize)
	c.seen().must(t, "initialize", answered(c.seen(), "1"))
	c.send(initialized)
	c.send(listTools)
	c.seen().must(t, "tools/list", answered(c.seen(), "2"))
}

func startHTTP(t *testing.T, script Script, options *Options) *Server {
	t.Helper()
	server, err := StartHTTP(script, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestTools(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := connect(t, transport, Script{})
			for i, test := range []struct{ tool, arguments, want string }{
				{"echo", `{"text":"héllo\n"}`, `"text":"héllo\n"`},
				{"echo", `{}`, `"code":-32602`},
				{"effect", `{"key":"a","more":1}`, `"text":"done: a"`},
				{"effect", `{"key":1}`, `"code":-32602`},
				{"idempotent_effect", `{"key":"a"}`, `"text":"done: a"`},
				{"progress", `{}`, `"text":"done"`},
				{"progress", `{"steps":0}`, `"code":-32602`},
				{"big", `{"bytes":5}`, `"text":"aaaaa"`},
				{"big", `{}`, `"code":-32602`},
				{"fail", `{"text":"no"}`, `"isError":true,"content":[{"type":"text","text":"no"}]`},
				{"nothing", `{}`, `unknown tool`},
			} {
				id := fmt.Sprint(50 + i)
				c.send(request(50+i, "tools/call", `{"name":"`+test.tool+`","arguments":`+test.arguments+`,"_meta":{"progressToken":1}}`))
				g := c.seen()
				g.must(t, test.tool, answered(g, id))
				if got := string(g.last); !strings.Contains(got, test.want) {
					t.Errorf("%s %s: %s, want %s", test.tool, test.arguments, got, test.want)
				}
			}
			c.send(request(80, "tools/call", `{"name":"progress","arguments":{"steps":4},"_meta":{"progressToken":1}}`))
			g := c.seen()
			g.must(t, "progress", answered(g, "80"))
			if want := map[string]int{"stdio": 7, "http": 4}[transport]; !g.look(func() bool { return g.methods["notifications/progress"] == want }) {
				t.Errorf("%v, want %d", g.methods, want)
			}
		})
	}
}
