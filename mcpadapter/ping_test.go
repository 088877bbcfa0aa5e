// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestPing: every transport and generation of the protocol can be asked for a
// sign of life, over and over.
func TestPing(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		for _, transport := range transports {
			if transport.fits != nil && !transport.fits(protocol) {
				continue
			}
			t.Run(transport.name+" "+protocol, func(t *testing.T) {
				c := mcptest.Open(t, transport.harness(t, mcpadapter.ClientOptions{Protocol: protocol}).Source)
				for range 2 {
					if err := c.(ensemble.Pinger).Ping(mcptest.Within(t)); err != nil {
						t.Errorf("Ping: %v", err)
					}
				}
				_ = c.Close(mcptest.Within(t))
				if c.(ensemble.Pinger).Ping(mcptest.Within(t)) == nil {
					t.Error("a closed connection gave a sign of life")
				}
			})
		}
	}
}

// TestPingAnswers: whatever the server answers is a sign of life.
func TestPingAnswers(t *testing.T) {
	answers := map[string]struct {
		answer func(http.ResponseWriter, *http.Request, mcptest.Message)
		alive  bool
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
			mcptest.ReplyError(w, m, -32601, "no")
		}, true},
		"500": {func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) { w.WriteHeader(500) }, true},
		"a web page": {func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.Header().Set("Content-Type", "text/html")
		}, true},
		"bad gateway": {func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) { w.WriteHeader(502) }, false},
		"silence":     {func(_ http.ResponseWriter, r *http.Request, _ mcptest.Message) { <-r.Context().Done() }, false},
	}
	for name, test := range answers {
		t.Run(name, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != "ping" {
					return false
				}
				test.answer(w, r, m)
				return true
			})
			c := openScripted(t, s)
			ctx := mcptest.Within(t)
			if name == "silence" {
				soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				ctx = soon
			}
			err := c.(ensemble.Pinger).Ping(ctx)
			if (err == nil) != test.alive {
				t.Errorf("Ping: %v", err)
			}
			if name == "silence" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Ping: %v, want that the time ran out", err)
			}
		})
	}
}

// A session that the server has lost with a restart is noticed by a ping, and by a ping after
// a call, also if the server answers 400, and not 404. Other refusals do not show that.
func TestForgottenSession(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		lost   bool
	}{
		"400": {400, true}, "405": {405, true}, "401": {401, false}, "403": {403, false}, "408": {408, false}, "429": {429, false}, "500": {500, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, session := range []string{"s1", ""} {
				var restarted atomic.Bool
				s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
					if m.Method == "initialize" {
						w.Header().Set("Mcp-Session-Id", session)
						return false
					}
					if restarted.Load() {
						w.WriteHeader(test.status)
						fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}`)
					}
					return restarted.Load()
				})
				pinged, called := openScripted(t, s), openScripted(t, s)
				write := mcptest.Tool(t, called, "write")
				restarted.Store(true)
				lost := test.lost && session != ""
				if err := pinged.(ensemble.Pinger).Ping(mcptest.Within(t)); (err != nil) != lost {
					t.Errorf("in the session %q: %v", session, err)
				}
				if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err == nil {
					t.Error("the call succeeded")
				}
				for _, c := range []ensemble.Connection{pinged, called} {
					if lost {
						mcptest.Await(t, "Lost", c.Lost())
						if err := c.Err(); err == nil || !strings.Contains(err.Error(), "no longer knows the session") {
							t.Errorf("the connection was lost because of %v", err)
						}
					} else if c.Err() != nil {
						t.Errorf("the connection was lost because of %v", c.Err())
					}
				}
			}
		})
	}
}

// TestSessionOfAnotherUser: a server that binds its sessions to users refuses (403) those of the
// former one after a login as another user. The connection ends, so that the next one is theirs. A
// token that was renewed ends nothing.
func TestSessionOfAnotherUser(t *testing.T) {
	var token atomic.Value
	token.Store("ada")
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", "s1")
		} else if strings.HasSuffix(r.Header.Get("Authorization"), "bob") {
			http.Error(w, "session user mismatch", http.StatusForbidden)
			return true
		}
		return false
	})
	options := &mcpadapter.HTTPOptions{
		ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"},
		Token:         func(context.Context) (string, error) { return token.Load().(string), nil },
	}
	pinged, called := mcptest.Open(t, mcpadapter.HTTP(s.URL, options)), mcptest.Open(t, mcpadapter.HTTP(s.URL, options))
	write := mcptest.Tool(t, called, "write")
	token.Store("ada, renewed")
	if err := pinged.(ensemble.Pinger).Ping(mcptest.Within(t)); err != nil || pinged.Err() != nil {
		t.Errorf("with a token that was renewed: %v, %v", err, pinged.Err())
	}
	token.Store("bob")
	if err := pinged.(ensemble.Pinger).Ping(mcptest.Within(t)); err == nil {
		t.Error("a ping in the session of another user succeeded")
	}
	if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.Unauthorized {
		t.Errorf("a call in the session of another user: %v", err)
	}
	mcptest.Await(t, "Lost", pinged.Lost())
	mcptest.Await(t, "Lost", called.Lost())
}
