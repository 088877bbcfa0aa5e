// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/pipenet"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/server"
)

// overPipes serves tools within a bubble of synctest; end ends it.
func overPipes(t *testing.T, isHTTP2 bool, options *server.Options, tools ...invoker.Invoker) (client *http.Client, end func()) {
	roster, err := ensemble.NewRoster(ensemble.Local("local", tools...))
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(roster, options)
	network := pipenet.Listen()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	web := &http.Server{Handler: srv.Handler(), Protocols: protocols}
	served := make(chan error, 1)
	go func() { served <- web.Serve(network) }()
	transport := &http.Transport{DialContext: network.Dial, Protocols: protocols}
	return &http.Client{Transport: transport}, func() {
		if err := srv.Close(t.Context()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = web.Close()
		<-served
		_ = roster.Close(t.Context())
	}
}

// overPipesWith serves in HTTP/1.1 without any deadline of the http.Server's.
func overPipesWith(t *testing.T, options *server.Options) (s *server.Server, dial func() net.Conn, end func()) {
	s = server.New(nil, options)
	network := pipenet.Listen()
	web := &http.Server{Handler: s.Handler()}
	served := make(chan error, 1)
	go func() { served <- web.Serve(network) }()
	dial = func() net.Conn {
		conn, err := network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	return s, dial, func() {
		_ = s.Close(t.Context())
		_ = web.Close()
		<-served
		time.Sleep(time.Second) // net/http lets clients read the last answer
	}
}

// send sends a message of protocol 2025-11-25.
func send(t *testing.T, client *http.Client, session, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"c","version":"1"}}}`
	ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// A batch that comes again after Retry-After is admitted, and one that can never be is refused for good.
func TestBatchesAndTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := overPipes(t, false, &server.Options{Rate: 0.5, Burst: 4})
		defer end()
		batch := func(n int) *http.Response {
			var messages []string
			for i := range n {
				messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
			}
			response := send(t, client, "", "["+strings.Join(messages, ",")+"]")
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			return response
		}
		if response := batch(4); response.StatusCode == http.StatusTooManyRequests {
			t.Errorf("a batch as large as the burst: %s", response.Status)
		}
		response, tries := batch(4), 1
		for ; response.StatusCode == http.StatusTooManyRequests && tries < 9; tries++ {
			seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(seconds) * time.Second)
			response = batch(4)
		}
		if tries != 3 { // the first is refused before its size is known
			t.Errorf("the next one: %s after %d tries", response.Status, tries)
		}
		time.Sleep(time.Hour)
		if response := batch(5); response.StatusCode != http.StatusBadRequest || response.Header.Get("Retry-After") != "" {
			t.Errorf("a batch larger than the burst: %s, %q", response.Status, response.Header)
		}
	})
}

// A session ends when it has been unused for its time, and not before.
func TestIdleSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := overPipes(t, false, &server.Options{SessionIdle: time.Hour})
		defer end()
		response := send(t, client, "", initialize)
		text := bodyOf(response)
		session := response.Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatal(text)
		}
		for i, step := range []struct {
			wait   time.Duration
			status int
		}{{59 * time.Minute, 200}, {59 * time.Minute, 200}, {time.Hour, 404}, {0, 404}} {
			time.Sleep(step.wait)
			synctest.Wait()
			response := send(t, client, session, ping)
			if bodyOf(response); response.StatusCode != step.status {
				t.Errorf("step %d: status %d, want %d", i, response.StatusCode, step.status)
			}
		}
	})
}

// A call may be silent for longer than a client may take to read a piece of its
// answer, also in HTTP/2, where a deadline ends a stream that writes nothing.
func TestQuietCall(t *testing.T) {
	for _, isHTTP2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[isHTTP2], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet := rawTool(t, invoker.Definition{Name: "quiet"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
					call.Progress(invoker.Progress{Message: "begun"})
					time.Sleep(50 * time.Second)
					return invoker.Output{Content: canister.Texts("done")}, nil
				})
				client, end := overPipes(t, isHTTP2, &server.Options{Tools: []invoker.Invoker{quiet}})
				defer end()
				response := send(t, client, "", initialize)
				bodyOf(response)
				response = send(t, client, response.Header.Get("Mcp-Session-Id"),
					`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"quiet","_meta":{"progressToken":1}}}`)
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil || !strings.Contains(string(text), `"begun"`) || !strings.Contains(string(text), `"done"`) {
					t.Errorf("got %s, %v", text, err)
				}
			})
		})
	}
}

// keeps is a sink that says when a record is there.
type keeps chan audit.Record

func (k keeps) Record(_ context.Context, record *audit.Record) error {
	k <- *record
	return nil
}

// Nothing follows a result, although the client had not read the messages before it.
func TestNothingFollowsTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk := rawTool(t, invoker.Definition{Name: "talk"}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			for i := range 50 {
				call.Progress(invoker.Progress{Done: float64(i)})
			}
			return invoker.Output{Content: canister.Texts("done")}, nil
		})
		roster, _ := ensemble.NewRoster()
		kept := make(keeps, 1)
		srv := server.New(roster, &server.Options{Tools: []invoker.Invoker{talk}, Audit: audit.New(kept, nil)})
		toServer, in := io.Pipe()
		out, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(t.Context(), toServer, fromServer) }()
		body := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "talk", 1), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
		if _, err := io.WriteString(in, body+"\n"); err != nil {
			t.Fatal(err)
		}
		<-kept // the result is about to leave
		read := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(out)
			read <- string(text)
		}()
		synctest.Wait()
		in.Close()
		text := <-read
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, `"done"`) || !strings.Contains(lines[0], "progress") {
			t.Errorf("got %s", text)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = srv.Close(t.Context())
		_ = roster.Close(t.Context())
	})
}

// Close also lets those finish who read a resource, and refuses who would begin.
func TestCloseLetsReadersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan bool), make(chan bool)
		library := local.Library{Resources: []local.Resource{{
			Resource: ensemble.Resource{URI: "test://slow", Name: "slow"},
			Read: func(ctx context.Context) ([]canister.ResourceContent, error) {
				close(begun)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return []canister.ResourceContent{{Text: "read"}}, ctx.Err()
			},
		}}}.Source()
		roster, err := ensemble.NewRoster(ensemble.New("local", library, nil))
		if err != nil {
			t.Fatal(err)
		}
		srv := server.New(roster, nil)
		toServer, in := io.Pipe()
		out, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(t.Context(), toServer, fromServer) }()
		lines := bufio.NewScanner(out)
		ask := func(id string) {
			if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":`+id+`,"method":"resources/read","params":{"uri":"test://slow",`+meta+"}}\n"); err != nil {
				t.Error(err)
			}
		}
		ask("1")
		<-begun
		closed := make(chan error, 1)
		go func() { closed <- srv.Close(t.Context()) }()
		synctest.Wait()
		ask("2")
		if !lines.Scan() || !strings.Contains(lines.Text(), `"id":2`) || !strings.Contains(lines.Text(), "shutting down") {
			t.Errorf("the second: %s", lines.Text())
		}
		close(release)
		if !lines.Scan() || !strings.Contains(lines.Text(), `"id":1`) || !strings.Contains(lines.Text(), `"read"`) {
			t.Errorf("the first: %s", lines.Text())
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		<-served
		_ = roster.Close(t.Context())
	})
}
