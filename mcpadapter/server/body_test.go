// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/mcpadapter/server"
)

// A request that is half sent ends in a server that has no deadlines of its own,
// whoever sends it, and is answered.
func TestHalfSentBodies(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		status int
		within time.Duration
	}{
		"no token": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", 401, 5 * time.Second},
		"a wrong token": {
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\na", 401, 5 * time.Second,
		},
		"a foreign host":      {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 10\r\n\r\n", 403, 5 * time.Second},
		"a foreign origin":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 10\r\n\r\n", 403, 5 * time.Second},
		"a browser's request": {"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 10\r\n\r\n", 204, 5 * time.Second},
		"PUT":                 {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", 405, 5 * time.Second},
		"DELETE": {
			"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + ada + "\r\nContent-Length: 10\r\n\r\n", 400, 5 * time.Second,
		},
		"GET": {
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + ada + "\r\nContent-Length: 10\r\n\r\n", 400, 5 * time.Second,
		},
		"metadata":            {"GET /.well-known/oauth-protected-resource/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", 404, 5 * time.Second},
		"a good token":        {head(ada, "Content-Length: 10") + "{", 408, 40 * time.Second},
		"a good token, large": {head(ada, "Content-Length: 4000000") + strings.Repeat(" ", 300_000), 408, 40 * time.Second},
		"chunks":              {head(ada, "Transfer-Encoding: chunked") + "ff\r\n{", 408, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dial, end := overPipesWith(t, &server.Options{
					Tokens: []server.BearerToken{{Token: ada}}, Hosts: []string{"localhost"},
					ResourceMetadata: &server.ResourceMetadata{Resource: "https://tools.example/mcp", AuthorizationServers: []string{"https://login.example"}},
				})
				defer end()
				began, conn := time.Now(), dial()
				go func() { _, _ = io.WriteString(conn, test.text) }() // the server may not read all of it
				answer := bufio.NewReader(conn)
				response, err := http.ReadResponse(answer, nil)
				if err != nil || response.StatusCode != test.status {
					t.Fatalf("got %v, %v", response, err)
				}
				_, _ = io.Copy(io.Discard, answer) // until the server ends it
				if took := time.Since(began); took > test.within {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A server that is about to end waits for no body.
func TestCloseEndsHalfSentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dial, end := overPipesWith(t, &server.Options{Token: ada})
		defer end()
		conn, began := dial(), time.Now()
		if _, err := io.WriteString(conn, head(ada, "Content-Length: 10")+"{"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() { _ = srv.Close(t.Context()) }()
		answer := bufio.NewReader(conn)
		if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode != 503 {
			t.Fatalf("got %v, %v", response, err)
		}
		_, _ = io.Copy(io.Discard, answer)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// The bodies of all requests under way have one bound, and a client a fourth.
func TestMemoryOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := []string{"a-0123456789abcdef", "b-0123456789abcdef", "c-0123456789abcdef", "d-0123456789abcdef", "e-0123456789abcdef"}
		options := &server.Options{MaxBody: 1 << 20, MaxBodies: 4 << 20}
		for _, token := range tokens {
			options.Tokens = append(options.Tokens, server.BearerToken{Token: token})
		}
		_, dial, end := overPipesWith(t, options)
		defer end()
		hold := func(token string) net.Conn { // half of it is here, and so there is room for all
			conn := dial()
			if _, err := io.WriteString(conn, head(token, "Content-Length: 1000000")+strings.Repeat(" ", 600_000)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return conn
		}
		status := func(token string) (int, string) {
			conn := dial()
			defer conn.Close()
			go func() {
				_, _ = io.WriteString(conn, head(token, "Content-Length: 1000000")+strings.Repeat(" ", 600_000))
			}()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			return response.StatusCode, response.Header.Get("Retry-After")
		}
		held := []net.Conn{hold(tokens[0])}
		if got, later := status(tokens[0]); got != 429 || later == "" {
			t.Errorf("the second of a client: status %d, Retry-After %q", got, later)
		}
		for _, token := range tokens[1:4] {
			held = append(held, hold(token))
		}
		if got, later := status(tokens[4]); got != 503 || later == "" {
			t.Errorf("one too many: status %d, Retry-After %q", got, later)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		synctest.Wait()
		held = []net.Conn{hold(tokens[4])}
		held[0].Close()
	})
}
