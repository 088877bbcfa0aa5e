// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/progress"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestDeafServer: neither Open, a call nor Close waits for a server that stops reading
// its pipe, although the SDK's connection would (E6, E11). The clock is real: the second
// call waits for a mutex of the SDK, and the clock of a bubble stands still during that.
func TestDeafServer(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go serveOnce(theirs)
	options := new(ClientOptions).withDefaults("deaf")
	ended := make(chan struct{})
	close(ended)
	c := newConnection(&options, &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended})
	if err := c.open(t.Context(), plan{version: wire.Legacy}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	mcptest.Returns(t, "the call", func() {
		_, err := c.call(ctx, &invoker.Call{Arguments: json.RawMessage(`{}`)}, "t")
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Timeout {
			t.Errorf("the call failed with %v, want TIMEOUT", err)
		}
	})
	other := make(chan struct{})
	go func() {
		defer close(other)
		_, _ = c.call(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{}`)}, "t")
	}()
	mcptest.Returns(t, "Close", func() {
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	mcptest.Returns(t, "the other call", func() { <-other })
}

// TestDeafServerIsGivenUp: a message whose context does not end, such as an answer to the
// server, does not wait forever either.
func TestDeafServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		link := &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20}
		connection, err := link.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = connection.Write(t.Context(), &jsonrpc.Request{Method: "notifications/cancelled"})
		if took := time.Since(began); err == nil || took != wire.StallTimeout+wire.EndTimeout {
			t.Errorf("after %v: %v", took, err)
		}
		if _, err := connection.Read(t.Context()); err == nil {
			t.Error("the connection is still there")
		}
	})
}

// TestDeafConnect: a server that takes nothing at all has all the time there is,
// and is asked for the other protocol the next time.
func TestDeafConnect(t *testing.T) {
	options := new(ClientOptions).withDefaults("deaf")
	tries := 0
	s := &source{options: options, inOrder: true, dial: func(context.Context) (link, error) {
		tries++
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		close(ended)
		return &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended}, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	mcptest.Returns(t, "Open", func() {
		if _, err := s.Open(ctx); !errors.Is(err, context.DeadlineExceeded) || tries != 1 {
			t.Errorf("Open returned %v after %d tries, want the deadline after 1", err, tries)
		}
	})
	if first := s.plans(t.Context())[0]; first.version != wire.Legacy {
		t.Errorf("the next time it is asked for %s first, want %s", first.version, wire.Legacy)
	}
}

// TestLastAnswer: an answer counts although the server leaves right after it.
func TestLastAnswer(t *testing.T) {
	for range 200 {
		ours, theirs := net.Pipe()
		options := new(ClientOptions).withDefaults("hasty")
		ended := make(chan struct{})
		close(ended)
		c := newConnection(&options, &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended})
		go func() {
			serveOnce(theirs)
			var m struct{ ID json.RawMessage }
			_ = json.NewDecoder(theirs).Decode(&m)
			_, _ = theirs.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[]}}` + "\n"))
			theirs.Close()
		}()
		if err := c.open(t.Context(), plan{version: wire.Legacy}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.call(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{}`)}, "t"); err != nil {
			t.Fatalf("the call failed with %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

// TestNotSent: a call that waits for its turn at the pipe until its time is
// over, and one that finds the server gone, did nothing and say so.
func TestNotSent(t *testing.T) {
	for _, cause := range []error{subprocess.NotSent(subprocess.ErrStdinClosed), &ensemble.ProcessError{}} {
		w := newInterceptor(nil, nil)
		w.inner = refusing{cause}
		x := new(exchange)
		id, _ := jsonrpc.MakeID("1")
		if err := w.Write(withExchange(t.Context(), x), &jsonrpc.Request{ID: id, Method: "tools/call"}); err == nil {
			t.Error("the write succeeded")
		}
		if want := !errors.Is(cause, subprocess.ErrNotSent); x.left.Load() != want {
			t.Errorf("after %T it is said %t that the request may have left", cause, !want)
		}
	}
}

// refusing is a connection that takes nothing.
type refusing struct{ cause error }

func (refusing) Read(ctx context.Context) (jsonrpc.Message, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (r refusing) Write(context.Context, jsonrpc.Message) error { return r.cause }
func (refusing) SessionID() string                              { return "" }
func (refusing) Close() error                                   { return nil }

// serveOnce answers initialize and then reads no more.
func serveOnce(conn net.Conn) {
	decoder := json.NewDecoder(conn)
	for range 2 {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if decoder.Decode(&m) != nil {
			return
		}
		if m.Method == "initialize" {
			_, _ = conn.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) +
				`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"deaf","version":"1"}}}` + "\n"))
		}
	}
}

// TestReportsFirst: when the last report and the answer are there at once, the
// report is delivered first, whichever select picks.
func TestReportsFirst(t *testing.T) {
	options := new(ClientOptions).withDefaults("server")
	c := newConnection(&options, &memoryLink{})
	defer c.life.end()
	for range 100 {
		x := &exchange{progress: progress.NewQueue()}
		listening, answered := make(chan struct{}), make(chan struct{})
		reports := 0
		call := &invoker.Call{Progress: func(invoker.Progress) {
			if reports++; reports == 1 {
				close(listening)
				<-answered
			}
		}}
		x.call = call
		err := c.requests.request(t.Context(), x, func(context.Context) error {
			defer time.AfterFunc(time.Millisecond, func() { close(answered) }) // about when the answer is there
			x.progress.Add(invoker.Progress{Done: 1})
			<-listening
			x.progress.Add(invoker.Progress{Done: 2})
			return nil
		})
		if err != nil || reports != 2 {
			t.Fatalf("%d reports, %v", reports, err)
		}
	}
}
