// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func processClaims() map[Fault]claim {
	return map[Fault]claim{
		"flood-stderr": {Rule{Size: 2 << 20}, func(s *scene) {
			eventually(s.T, "a flood", func() bool { return s.stdio.stderr.Size() >= 2<<20 })
			s.alive()
		}, false, false},
		"ignore-term": {Rule{}, func(s *scene) {
			s.struck()
			terminate(s.stdio.cmd)
			s.alive()
			_ = s.stdio.stdin.Close()
			s.seen().never(s, "the end", func() bool { return s.seen().ended })
			if !s.stdio.running() {
				s.Error("the process ended")
			}
		}, false, false},
		"stop-reading": {Rule{}, func(s *scene) {
			s.struck()
			s.send(ping)
			_ = s.stdio.stdin.Close()
			s.seen().never(s, "an answer or the end", func() bool { return s.seen().answers["9"] > 0 || s.seen().ended })
			terminate(s.stdio.cmd)
			s.stdio.waitExit()
		}, false, false},
		"leave-child": {Rule{}, func(s *scene) {
			child := s.child()
			_ = s.stdio.stdin.Close()
			s.stdio.waitExit()
			s.seen().must(s, "the end of stdout", func() bool { return s.seen().ended })
			if !alive(child) {
				s.Error("the child ended with the server")
			}
		}, false, false},
		"leave-child-holding-pipes": {Rule{}, func(s *scene) {
			child := s.child()
			_ = s.stdio.stdin.Close()
			s.stdio.waitExit()
			s.seen().never(s, "the end of stdout", func() bool { return s.seen().ended })
			if !alive(child) {
				s.Error("the child ended with the server")
			}
		}, false, false},
	}
}

// struck waits until the fault has taken effect: the rule after its rule has written.
func (s *scene) struck() {
	s.Helper()
	eventually(s.T, "the fault", func() bool { return s.stdio.stderr.Size() > 0 })
}

// child waits for the child that the server left.
func (s *scene) child() int {
	s.Helper()
	var children Ledger
	eventually(s.T, "a child", func() bool {
		children = readLedger(s.T, s.script.Dir).Of(KindChild)
		return len(children) == 1
	})
	return children[0].Child
}

// TestLaunch: a process over HTTP, killed, and another at the same address.
func TestLaunch(t *testing.T) {
	script := Script{Dir: t.TempDir(), Rules: []Rule{{Fault: "die", At: "between-calls", Status: 4}}}
	first, err := Launch(program(script, "-http"))
	if err != nil {
		t.Fatal(err)
	}
	c := newHTTPClient(t, first.URL)
	hello(t, c)
	first.Kill()
	if alive(first.PID()) {
		t.Error("it lives")
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(first.URL, "http://"), "/mcp")
	second, err := Launch(program(script, "-http", "-addr", addr))
	if err != nil {
		t.Fatal(err)
	}
	if second.URL != first.URL {
		t.Errorf("at %s, want %s", second.URL, first.URL)
	}
	c = newHTTPClient(t, second.URL)
	hello(t, c)
	c.send(callEffect)
	c.seen().must(t, "an answer", answered(c.seen(), "3"))
	eventually(t, "its death", func() bool {
		c.send(ping)
		return c.seen().within(patience, func() bool { return c.seen().ended }) && c.seen().look(func() bool { return c.seen().err != nil })
	})
	if err := second.Close(); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("got %v, want exit status 4", err)
	}
	if got := len(readLedger(t, script.Dir).Effects()); got != 1 {
		t.Errorf("%d effects, want 1", got)
	}
	third, err := Launch(program(Script{}, "-http"))
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Close(); err != nil {
		t.Errorf("it does not end well with its stdin: %v", err)
	}
}

// TestLife: a process that ignores signals ends by itself.
func TestLife(t *testing.T) {
	c := startStdio(t, Script{Life: 300 * time.Millisecond, Rules: []Rule{
		{Fault: "ignore-term", At: "start"}, {Fault: "stop-reading", At: "start"},
	}})
	if got := c.waitExit(); got != 99 {
		t.Errorf("status %d, want 99", got)
	}
}

// TestTheUsualEnds: a well-behaved process ends when it is told to.
func TestTheUsualEnds(t *testing.T) {
	c := startStdio(t, Script{})
	hello(t, c)
	_ = c.stdin.Close()
	if got := c.waitExit(); got != 0 {
		t.Errorf("after the end of stdin: status %d", got)
	}
	c = startStdio(t, Script{})
	hello(t, c)
	terminate(c.cmd)
	if got := c.waitExit(); got != -1 {
		t.Errorf("after SIGTERM: status %d, want the signal", got)
	}
}
