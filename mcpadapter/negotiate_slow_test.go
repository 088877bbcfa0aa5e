// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Answers of servers of both generations, for scripts. %s is the ID.
const (
	discovered  = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`
	initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`
	refused     = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`
)

// slowServer starts reading after a while. It answers a method after the method's delay,
// or never if it has no answer for it.
type slowServer struct {
	start   time.Duration
	answers map[string]string
	delays  map[string]time.Duration
}

// serve answers until the connection ends.
func (s slowServer) serve(conn net.Conn) {
	defer conn.Close()
	time.Sleep(s.start)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil || s.answers[m.Method] == "" {
			continue
		}
		time.Sleep(s.delays[m.Method])
		if _, err := fmt.Fprintf(conn, s.answers[m.Method]+"\n", m.ID); err != nil {
			return
		}
	}
}

// buffered is a pipe that accepts writes although there is not yet a reader, like the
// pipe to a process.
func buffered() (ours, theirs net.Conn) {
	ours, between := net.Pipe()
	behind, theirs := net.Pipe()
	go func() {
		lines := make(chan []byte, 100)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(between); s.Scan(); {
				lines <- append(append([]byte{}, s.Bytes()...), '\n')
			}
		}()
		go func() {
			defer behind.Close()
			for line := range lines {
				if _, err := behind.Write(line); err != nil {
					return
				}
			}
		}()
		defer between.Close()
		for s := bufio.NewScanner(behind); s.Scan(); {
			if _, err := between.Write(append(s.Bytes(), '\n')); err != nil {
				return
			}
		}
	}()
	return ours, theirs
}

// A server that starts slowly is started once, and connects when it is ready, in its
// protocol; the same holds for one that ignores unknown methods. (Within 30 s, a third of
// which is reserved for the first question.)
func TestSlowServerIsStartedOnce(t *testing.T) {
	newer := map[string]string{"server/discover": discovered, "initialize": refused}
	older := map[string]string{"server/discover": refused, "initialize": initialized}
	either := map[string]string{"server/discover": discovered, "initialize": initialized}
	ignores := map[string]string{"initialize": initialized}
	for name, test := range map[string]struct {
		server  slowServer
		version string
		took    time.Duration
	}{
		"new, at once":    {slowServer{0, newer, nil}, wire.Modern, 0},
		"old, at once":    {slowServer{0, older, nil}, "2025-06-18", 0},
		"new, 9 s":        {slowServer{9 * time.Second, newer, nil}, wire.Modern, 9 * time.Second},
		"old, 9 s":        {slowServer{9 * time.Second, older, nil}, "2025-06-18", 9 * time.Second},
		"new, 11 s":       {slowServer{11 * time.Second, newer, nil}, wire.Modern, 11 * time.Second},
		"old, 11 s":       {slowServer{11 * time.Second, older, nil}, "2025-06-18", 11 * time.Second},
		"both, 11 s":      {slowServer{11 * time.Second, either, nil}, "2025-06-18", 11 * time.Second},
		"new, 21 s":       {slowServer{21 * time.Second, newer, nil}, wire.Modern, 21 * time.Second},
		"old, 21 s":       {slowServer{21 * time.Second, older, nil}, "2025-06-18", 21 * time.Second},
		"both, at once":   {slowServer{0, either, nil}, wire.Modern, 0},
		"new alone, slow": {slowServer{11 * time.Second, map[string]string{"server/discover": discovered}, nil}, wire.Modern, 21 * time.Second},
		"ignores":         {slowServer{0, ignores, nil}, "2025-06-18", 10 * time.Second},
		"ignores, 21 s":   {slowServer{21 * time.Second, ignores, nil}, "2025-06-18", 21 * time.Second},
		"thinks for 15 s": {slowServer{0, newer, map[string]time.Duration{"server/discover": 15 * time.Second}}, wire.Modern, 15 * time.Second},
		"refuses in 15 s": {slowServer{0, older, map[string]time.Duration{"server/discover": 15 * time.Second}}, "2025-06-18", 15 * time.Second},
		"15 s, twice": {
			slowServer{0, older, map[string]time.Duration{"server/discover": 14 * time.Second, "initialize": 14 * time.Second}}, "2025-06-18", 28 * time.Second,
		},
		"old, slow answer": {slowServer{11 * time.Second, older, map[string]time.Duration{"initialize": 5 * time.Second}}, "2025-06-18", 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				starts := 0
				s := &source{options: new(ClientOptions).withDefaults("slow"), inOrder: true, dial: func(context.Context) (link, error) {
					starts++
					ours, theirs := buffered()
					ended := make(chan struct{})
					go func() { defer close(ended); test.server.serve(theirs) }()
					return &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended}, nil
				}}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				c, err := s.Open(ctx)
				if err != nil {
					t.Fatalf("after %s and %d starts: %v", time.Since(began), starts, err)
				}
				if got := c.Peer().Protocol; got != "MCP "+test.version || starts != 1 || time.Since(began) != test.took {
					t.Errorf("connected in %s after %s and %d starts; want %s after %s and 1", got, time.Since(began), starts, test.version, test.took)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// readingLink is a link that knows whether its server has begun to read.
type readingLink struct {
	*memoryLink
	begins time.Time
}

func (l readingLink) unread() (int, bool) {
	if time.Now().Before(l.begins) {
		return 1, true
	}
	return 0, true
}

// A server that has just read the question, when it is looked at, has time to answer
// before it is asked for an older protocol.
func TestServerHasTimeToAnswerOnceItHasRead(t *testing.T) {
	either := map[string]string{"server/discover": discovered, "initialize": initialized}
	for name, test := range map[string]struct {
		server  slowServer
		version string
		took    time.Duration
	}{
		"new": {
			slowServer{12400 * time.Millisecond, either, map[string]time.Duration{"server/discover": time.Second}}, wire.Modern, 13400 * time.Millisecond,
		},
		"ignores": {slowServer{12400 * time.Millisecond, map[string]string{"initialize": initialized}, nil}, "2025-06-18", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{options: new(ClientOptions).withDefaults("slow"), inOrder: true, dial: func(context.Context) (link, error) {
					ours, theirs := buffered()
					ended := make(chan struct{})
					go func() { defer close(ended); test.server.serve(theirs) }()
					memory := &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended}
					return readingLink{memory, time.Now().Add(test.server.start)}, nil
				}}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				c, err := s.Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if got := c.Peer().Protocol; got != "MCP "+test.version || time.Since(began) != test.took {
					t.Errorf("connected in %s after %s; want %s after %s", got, time.Since(began), test.version, test.took)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// A server that is stuck on a question for the newest protocol, and reads nothing
// more, is asked that question twice in vain and then no more.
func TestStuckOnNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{options: new(ClientOptions).withDefaults("stuck"), inOrder: true, dial: func(context.Context) (link, error) {
			ours, theirs := buffered()
			ended := make(chan struct{})
			server := slowServer{
				answers: map[string]string{"server/discover": discovered, "initialize": initialized},
				delays:  map[string]time.Duration{"server/discover": time.Hour},
			}
			go func() { defer close(ended); server.serve(theirs) }()
			return &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended}, nil
		}}
		for start, want := range []bool{false, true, false, true, true, true} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			c, err := s.Open(ctx)
			cancel()
			if connected := err == nil; connected != want {
				t.Errorf("start %d: connected is %t, want %t (%v)", start, connected, want, err)
			}
			if err == nil && (c.Peer().Protocol != "MCP 2025-06-18" || c.Close(t.Context()) != nil) {
				t.Errorf("start %d: the protocol is %s", start, c.Peer().Protocol)
			}
		}
		time.Sleep(2 * time.Hour) // until the servers have noticed
	})
}
