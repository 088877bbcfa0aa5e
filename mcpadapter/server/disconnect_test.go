// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// A call of a session goes on when its client disconnects, and has its place and its memory
// until it ends.
func TestCallsOfDisconnectedClients(t *testing.T) {
	for name, c := range map[string]struct {
		options server.Options
		running int
	}{
		"places": {server.Options{Parallel: 2}, 2},
		"memory": {server.Options{Parallel: 10, MaxBody: 300 << 10, MaxBodies: 1200 << 10}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			begun, end := make(chan struct{}), make(chan struct{})
			slow := rawTool(t, invoker.Definition{Name: "slow"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
				begun <- struct{}{}
				<-end
				return invoker.Output{}, nil
			})
			c.options.Tools = []invoker.Invoker{slow}
			srv := server.New(nil, &c.options)
			defer srv.Close(context.Background())
			defer close(end)
			ended := make(chan int, 1)
			handler := srv.Handler()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- 0 }()
				handler.ServeHTTP(w, r)
			}))
			defer web.Close()
			_, session := tried(t.Context(), web.URL, "", initialize)
			<-ended
			call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"text":"` + strings.Repeat("x", 200<<10) + `"}}}`
			for i := range 10 {
				ctx, disconnect := context.WithCancel(t.Context())
				status := make(chan int, 1)
				go func() {
					got, _ := tried(ctx, web.URL, session, strings.Replace(call, `"id":2`, `"id":2`+strconv.Itoa(i), 1))
					status <- got
				}()
				select {
				case <-begun:
					if i >= c.running {
						t.Errorf("call %d runs", i+1)
					}
				case got := <-status:
					if got != http.StatusTooManyRequests || i < c.running {
						t.Errorf("call %d: status %d", i+1, got)
					}
				}
				disconnect()
				<-ended
			}
		})
	}
}

// tried sends a message of a session and returns the status of the response, 0 without one,
// and the session that it begins.
func tried(ctx context.Context, url, session, body string) (status int, begun string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, ""
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get("Mcp-Session-Id")
}
