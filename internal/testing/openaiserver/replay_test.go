// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// dial sends a request by hand and returns the connection.
func dial(t *testing.T, base string) net.Conn {
	t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	body := request(userMessage, `"stream":true`)
	_, err = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestReplayKeepsBoundaries reads the HTTP chunks themselves.
func TestReplayKeepsBoundaries(t *testing.T) {
	big := strings.Repeat("x", 5000)
	server := start(t, nil, openaiserver.Step{Reply: openaiserver.Replay{
		Parts: []openaiserver.Part{{Data: []byte("da")}, {Data: []byte("ta: "), Pause: time.Millisecond}, {Data: []byte(big)}},
	}})
	conn := dial(t, server.URL())
	reader := bufio.NewReader(conn)
	var raw strings.Builder
	for !strings.HasSuffix(raw.String(), "0\r\n\r\n") {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, raw.String())
		}
		raw.WriteString(line)
	}
	_, body, _ := strings.Cut(raw.String(), "\r\n\r\n")
	if want := "2\r\nda\r\n4\r\nta: \r\n1388\r\n" + big + "\r\n0\r\n\r\n"; body != want {
		t.Errorf("got %.100q, want %.100q", body, want)
	}
}

func TestReplayOnTheWire(t *testing.T) {
	raw := "HTTP/1.1 200 Fine\r\nX-Odd:  spaces \r\ncontent-type: text/event-stream\r\n\r\ndata: [DONE]"
	server := start(t, nil, openaiserver.Step{Reply: openaiserver.Replay{Wire: true, Parts: openaiserver.Split([]byte(raw), 10)}})
	if got, err := io.ReadAll(dial(t, server.URL())); string(got) != raw || err != nil {
		t.Errorf("got %q, error %v", got, err)
	}
}

func TestEnds(t *testing.T) {
	parts := []openaiserver.Part{{Data: []byte("data: {")}}
	wire := []openaiserver.Part{{Data: []byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: {")}}
	tests := []struct {
		name   string
		replay openaiserver.Replay
		want   error // of reading to the end
	}{
		{"cut", openaiserver.Replay{Parts: parts, End: openaiserver.EndCut}, nil},
		{"reset", openaiserver.Replay{Parts: parts, End: openaiserver.EndReset}, syscall.ECONNRESET},
		{"wire cut", openaiserver.Replay{Wire: true, Parts: wire, End: openaiserver.EndCut}, nil},
		{"wire reset", openaiserver.Replay{Wire: true, Parts: wire, End: openaiserver.EndReset}, syscall.ECONNRESET},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := start(t, nil, openaiserver.Step{Reply: test.replay})
			got, err := io.ReadAll(dial(t, server.URL()))
			if !errors.Is(err, test.want) {
				t.Errorf("reading ended with %v, want %v", err, test.want)
			}
			if test.want == nil && !strings.Contains(string(got), "data: {") || strings.HasSuffix(string(got), "0\r\n\r\n") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestStallLetsGo has the client leave a reply that stalls; Close then has
// nothing left to wait for.
func TestStallLetsGo(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\n\r\ndata: {"
	for _, wire := range []bool{false, true} {
		server := start(t, nil, openaiserver.Step{Reply: openaiserver.Replay{
			Wire: wire, Parts: []openaiserver.Part{{Data: []byte(head)}}, End: openaiserver.EndStall,
		}})
		conn := dial(t, server.URL())
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
		if _, err := io.ReadAll(conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wire %v: a stall ended by itself with %v", wire, err)
		}
		conn.Close()
		server.Close()
	}
}

// TestCloseEndsStall has the server give up a connection that net/http has
// handed over.
func TestCloseEndsStall(t *testing.T) {
	server := start(t, nil, openaiserver.Step{Reply: openaiserver.Replay{
		Wire: true, Parts: []openaiserver.Part{{Data: []byte("HTTP/1.1 200 OK\r\n\r\n")}}, End: openaiserver.EndStall,
	}})
	conn := dial(t, server.URL())
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

func TestSplit(t *testing.T) {
	for size, want := range map[int]int{-1: 1, 0: 1, 1: 5, 2: 3, 5: 1, 6: 1} {
		parts := openaiserver.Split([]byte("hello"), size)
		if len(parts) != want || string((openaiserver.Replay{Parts: parts}).Body()) != "hello" {
			t.Errorf("size %d: %d parts", size, len(parts))
		}
	}
	if got := string(openaiserver.Recording([]byte("x")).Body()); got != "x" {
		t.Errorf("recording: %q", got)
	}
}
