// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func TestStopAndRestart(t *testing.T) {
	server := startHTTP(t, Script{}, nil)
	c := newHTTPClient(t, server.URL())
	hello(t, c)
	stream := c.listen()
	c.send(request(4, "tools/call", `{"name":"wait"}`))
	waiting := c.seen()

	url := server.URL()
	idle, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := io.WriteString(idle, "OPTIONS /mcp HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := idle.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Fatalf("%v, %v", response, err)
	}
	server.Stop()
	if _, err := io.Copy(io.Discard, idle); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("an idle connection stays")
	}
	if server.Running() {
		t.Error("it runs")
	}
	waiting.must(t, "a cut", func() bool { return waiting.cut })
	stream.must(t, "a cut", func() bool { return stream.cut })
	c.send(ping)
	c.seen().must(t, "refused", func() bool { return c.seen().err != nil })

	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if server.URL() != url || !server.Running() {
		t.Errorf("at %s, running %t; want %s", server.URL(), server.Running(), url)
	}
	c.send(ping)
	c.seen().must(t, "404: the session is gone", func() bool { return c.seen().status == http.StatusNotFound })
	c.session = ""
	hello(t, c)
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
	if server.Restart() == nil {
		t.Error("a closed server came back")
	}
}

func TestComeBack(t *testing.T) {
	server := startHTTP(t, Script{Rules: []Rule{{Fault: "die", At: "after-effect"}}}, &Options{ComeBack: 20 * time.Millisecond})
	died := server.Died()
	if got := func() *seen {
		c := newHTTPClient(t, server.URL())
		hello(t, c)
		c.send(callEffect)
		return c.seen()
	}(); !got.within(patience, func() bool { return got.ended }) || got.look(answered(got, "3")) {
		t.Error("the server lives")
	}
	<-died
	eventually(t, "the server", server.Running)
	if got := callOnce(t, server); got != '.' {
		t.Errorf("got %c", got)
	}
}

func TestDropConnectionsKeepsSessions(t *testing.T) {
	server := startHTTP(t, Script{}, nil)
	c := newHTTPClient(t, server.URL())
	hello(t, c)
	stream := c.listen()
	server.DropConnections()
	stream.must(t, "a cut", func() bool { return stream.cut })
	c.http.CloseIdleConnections() // the client may not know yet
	c.send(ping)
	c.seen().must(t, "an answer", answered(c.seen(), "9"))
}

func TestSessions(t *testing.T) {
	server := startHTTP(t, Script{}, nil)
	c := newHTTPClient(t, server.URL())
	status := func(message string, want int) {
		t.Helper()
		c.send(message)
		c.seen().must(t, http.StatusText(want), func() bool { return c.seen().status == want })
	}
	status(ping, http.StatusBadRequest)
	status(request(7, "server/discover", `{}`), http.StatusOK)
	c.seen().must(t, "method not found", func() bool { return strings.Contains(string(c.seen().last), "-32601") })
	hello(t, c)
	status(ping, http.StatusOK)
	server.ExpireSessions()
	status(ping, http.StatusNotFound)
	c.session = ""
	hello(t, c)
	stream := c.listen()
	c.do(http.MethodDelete, "", newSeen())
	stream.must(t, "the end", func() bool { return stream.ended })
	status(ping, http.StatusNotFound)
	status(`{"id"`, http.StatusBadRequest)
}

// TestRedirects: following leads on the same host to an answer, and elsewhere
// to an entry in the ledger.
func TestRedirects(t *testing.T) {
	dir := t.TempDir()
	server := startHTTP(t, Script{Dir: dir, Rules: []Rule{
		{Fault: "redirect-same-host", At: "initialize", Times: Always},
		{Fault: "redirect-other-host", At: "before-effect"},
	}}, nil)
	c := newHTTPClient(t, server.URL())
	c.http.CheckRedirect = nil
	hello(t, c)
	c.send(callEffect)
	c.seen().must(t, "404 elsewhere", func() bool { return c.seen().status == http.StatusNotFound })
	ledger := readLedger(t, dir)
	elsewhere := ledger.Of(KindElsewhere)
	if len(elsewhere) != 1 || !strings.HasPrefix(elsewhere[0].Text, "POST ") || !strings.Contains(elsewhere[0].Text, "Content-Type") {
		t.Errorf("elsewhere: %v", elsewhere)
	}
	if len(ledger.Effects()) != 0 || len(ledger.Of(KindStruck)) != 2 {
		t.Errorf("ledger: %v", ledger)
	}
}

func TestSelfSigned(t *testing.T) {
	server := startHTTP(t, Script{Rules: []Rule{{Fault: "self-signed", At: "start"}}}, nil)
	if !strings.HasPrefix(server.URL(), "https://") {
		t.Fatal(server.URL())
	}
	c := newHTTPClient(t, server.URL())
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Roots()}
	c.send(initialize)
	c.seen().must(t, "no trust", func() bool { return c.seen().err != nil && strings.Contains(c.seen().err.Error(), "certificate") })
	if err := server.Restart(); err != nil { // the fault strikes once
		t.Fatal(err)
	}
	hello(t, c)

	if plain := startHTTP(t, Script{}, nil); plain.Roots() != nil {
		t.Error("roots without TLS")
	}
	trusted := startHTTP(t, Script{}, &Options{TLS: true})
	c = newHTTPClient(t, trusted.URL())
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trusted.Roots()}
	hello(t, c)
}

func TestAddrInUse(t *testing.T) {
	server := startHTTP(t, Script{}, nil)
	addr := strings.TrimSuffix(strings.TrimPrefix(server.URL(), "http://"), "/mcp")
	if _, err := StartHTTP(Script{}, &Options{Addr: addr}); err == nil {
		t.Error("two servers at one address")
	}
}

// TestCloseLeavesNothing: whatever was going on.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		server, err := StartHTTP(Script{Rules: []Rule{
			{Fault: "silence", At: "before-effect", Tool: "effect"},
			{Fault: "answer-late", At: "after-effect", Tool: "effect"},
			{Fault: "redirect-other-host", At: "initialize", Nth: 9},
		}}, &Options{ComeBack: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Run("use", func(t *testing.T) {
			c := newHTTPClient(t, server.URL())
			hello(t, c)
			c.listen()
			for range 2 {
				c.send(callEffect)
			}
			c.send(request(4, "tools/call", `{"name":"wait","_meta":{"progressToken":1}}`))
			c.seen().must(t, "progress", func() bool { return c.seen().methods["notifications/progress"] == 1 })
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}

// TestLeavingIsNotCancelling: a client that goes away in a storm before the
// effect does not keep the effect away.
func TestLeavingIsNotCancelling(t *testing.T) {
	dir := t.TempDir()
	server := startHTTP(t, Script{Dir: dir, Rules: []Rule{{Fault: "log-storm", At: "before-effect"}, {Fault: "slow", At: "before-effect", Delay: quiet}}}, nil)
	c := newHTTPClient(t, server.URL())
	hello(t, c)
	c.send(callEffect)
	c.seen().must(t, "a storm", func() bool { return c.seen().methods["notifications/message"] > 3 })
	c.leave()
	eventually(t, "the effect", func() bool { return len(readLedger(t, dir).Effects()) == 1 })
}

// The function told of a fault is called before its part is done, with the entry of the
// ledger.
func TestStruck(t *testing.T) {
	dir := t.TempDir()
	told := make(chan Entry, 1)
	server := startHTTP(t, Script{Dir: dir, Rules: []Rule{{Fault: "silence", At: "before-effect", Tool: "effect"}}}, &Options{Struck: func(e Entry) {
		if ledger, err := ReadLedger(dir); err != nil || len(ledger.Of(KindStruck)) != 1 || len(ledger.Effects()) != 0 {
			t.Errorf("the ledger is %v, %v", ledger, err)
		}
		told <- e
	}})
	c := newHTTPClient(t, server.URL())
	hello(t, c)
	c.send(request(4, "tools/call", `{"name":"effect","arguments":{"key":"k"}}`))
	select {
	case e := <-told:
		if e.Fault != "silence" || e.Place != "before-effect" || e.Tool != "effect" {
			t.Errorf("it is told of %+v", e)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
}
