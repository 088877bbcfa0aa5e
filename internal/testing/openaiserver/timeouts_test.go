// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// single is a listener of one connection.
type single struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conn:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *single) Close() error {
	close(s.closed)
	return nil
}

func (*single) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback, Port: 80} }

// overPipe serves one connection within a bubble of synctest.
func overPipe(t *testing.T, test func(conn net.Conn), steps ...openaiserver.Step) {
	synctest.Test(t, func(t *testing.T) {
		server := openaiserver.New(openaiserver.Script{Steps: steps, Repeat: true}, nil)
		web, listener := &http.Server{Handler: server}, &single{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		client, other := net.Pipe()
		listener.conn <- other
		served := make(chan error, 1)
		go func() { served <- web.Serve(listener) }()
		test(client)
		_ = client.Close()
		_ = web.Close()
		<-served
		_ = server.Close()
		time.Sleep(time.Second) // net/http lets a client read the last answer
	})
}

func headOf(length string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + length + "\r\n\r\n"
}

// A request that is half sent is answered, and its connection ends.
func TestHalfSentBody(t *testing.T) {
	overPipe(t, func(conn net.Conn) {
		began := time.Now()
		if _, err := io.WriteString(conn, headOf("100")+"{"); err != nil {
			t.Fatal(err)
		}
		answer := bufio.NewReader(conn)
		if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("got %v, %v", response, err)
		}
		_, _ = io.Copy(io.Discard, answer) // until the server ends it
		if took := time.Since(began); took < 20*time.Second || took > 40*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A client that does not read its answer does not hold a connection for ever.
func TestUnreadAnswer(t *testing.T) {
	for name, reply := range map[string]openaiserver.Reply{
		"whole":  openaiserver.Message{Text: strings.Repeat("x", 1<<20)},
		"replay": openaiserver.Replay{Parts: openaiserver.Split(make([]byte, 1<<20), 1000)},
		"wire":   openaiserver.Replay{Parts: openaiserver.Split(make([]byte, 1<<20), 1000), Wire: true},
	} {
		t.Run(name, func(t *testing.T) {
			overPipe(t, func(conn net.Conn) {
				body := request(userMessage, "")
				if _, err := io.WriteString(conn, headOf(strconv.Itoa(len(body)))+body); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				got, _ := io.ReadAll(conn) // what was on its way, and the end
				if len(got) >= 1<<20 {
					t.Errorf("the server still wrote, %d bytes", len(got))
				}
			}, openaiserver.Step{Reply: reply})
		})
	}
}

// A reply may be slow on purpose, and the connection serves another request.
func TestSlowReply(t *testing.T) {
	body := request(userMessage, `"stream":true`)
	overPipe(t, func(conn net.Conn) {
		answers := bufio.NewReader(conn)
		for range 2 {
			began := time.Now()
			if _, err := io.WriteString(conn, headOf(strconv.Itoa(len(body)))+body); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			if err != nil || !strings.HasSuffix(string(got), "ab") || time.Since(began) < 3*time.Minute {
				t.Errorf("%q after %v: %v", got, time.Since(began), err)
			}
			time.Sleep(time.Minute) // between two requests
		}
	}, openaiserver.Step{Reply: openaiserver.Replay{
		Delay: time.Minute, Parts: []openaiserver.Part{{Data: []byte("a"), Pause: time.Minute}, {Data: []byte("b"), Pause: time.Minute}},
	}})
}
