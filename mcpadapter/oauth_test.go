// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"golang.org/x/oauth2"
)

// askedFor is an OAuthHandler that has a new token each time it is asked.
type askedFor struct {
	times   atomic.Int64
	refuses error
}

func (a *askedFor) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if a.times.Load() == 0 {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token-" + string(rune('0'+a.times.Load()))}), nil
}

func (a *askedFor) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	resp.Body.Close()
	a.times.Add(1)
	return a.refuses
}

// guarded is a scripted server that wants a token.
func guarded(t *testing.T, wants *atomic.Value) *mcptest.Scripted {
	return mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if r.Header.Get("Authorization") != "Bearer "+wants.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, `{"content":[]}`)
			return true
		}
		return false
	})
}

func TestOAuth(t *testing.T) {
	var wants atomic.Value
	wants.Store("token-1")
	s := guarded(t, &wants)
	handler := new(askedFor)
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{OAuth: handler}))
	write := mcptest.Tool(t, c, "write")
	wants.Store("token-2") // the first one expired
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := handler.times.Load(); n != 2 {
		t.Errorf("a token was asked for %d times, want 2", n)
	}
	wants.Store("none")
	if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.Unauthorized {
		t.Errorf("a call without a valid token failed with %v, want UNAUTHORIZED", err)
	}
}

// TestOAuthRefused: a person who says no is asked once.
func TestOAuthRefused(t *testing.T) {
	var wants atomic.Value
	wants.Store("none")
	s := guarded(t, &wants)
	handler := &askedFor{refuses: errors.New("the person said no")}
	if _, err := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{OAuth: handler}).Open(mcptest.Within(t)); !errors.Is(err, handler.refuses) {
		t.Errorf("Open: %v", err)
	}
	if n := handler.times.Load(); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
}

// TestRefusalIsNotRepeated: a call that the server refuses (403) is made again only if the server
// says that the token has too few scopes.
func TestRefusalIsNotRepeated(t *testing.T) {
	for challenge, want := range map[string]int{
		"": 1, `Basic error="insufficient_scope"`: 1, `Bearer error="invalid_request"`: 1, `Bearer error="insufficient_scope`: 1,
		`Bearer error="insufficient_scope"`: 2, `DPoP error="insufficient_scope"`: 2,
	} {
		t.Run(challenge, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method == "tools/call" {
					w.Header().Set("WWW-Authenticate", challenge)
					w.WriteHeader(http.StatusForbidden)
				}
				return m.Method == "tools/call"
			})
			write := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{OAuth: new(askedFor)})), "write")
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.Unauthorized {
				t.Errorf("the call failed with %v, want UNAUTHORIZED", err)
			}
			if n := len(s.Received("tools/call")); n != want {
				t.Errorf("the server received the call %d times, want %d", n, want)
			}
		})
	}
}

func TestTokenFails(t *testing.T) {
	s := mcptest.NewScripted(t, nil)
	failed := errors.New("no token today")
	options := &mcpadapter.HTTPOptions{Token: func(context.Context) (string, error) { return "", failed }}
	if _, err := mcpadapter.HTTP(s.URL, options).Open(mcptest.Within(t)); !errors.Is(err, failed) {
		t.Errorf("Open: %v", err)
	}
	if got := s.Received("server/discover"); len(got) > 0 {
		t.Error("a request was sent without its token")
	}
}

// expired is an OAuthHandler whose first token can no longer be refreshed.
type expired struct{ askedFor }

func (e *expired) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	if e.times.Load() == 0 {
		return e, nil
	}
	return e.askedFor.TokenSource(ctx)
}

func (e *expired) Token() (*oauth2.Token, error) {
	return nil, &oauth2.RetrieveError{ErrorCode: "invalid_grant", Response: &http.Response{Status: "400 Bad Request"}}
}

func TestOAuthExpired(t *testing.T) {
	var wants atomic.Value
	wants.Store("token-1")
	s := guarded(t, &wants)
	mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{OAuth: new(expired)})), "write")
}

// TestTokenIgnoresItsContext: Close does not wait for a Token without a limit, and says that it
// is still running.
func TestTokenIgnoresItsContext(t *testing.T) {
	t.Parallel()
	cut, asked, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "GET" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		select {
		case <-cut: // the client opens it again
		case <-r.Context().Done():
		}
		return true
	})
	var hangs atomic.Bool
	c, err := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
		ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"},
		Token: func(context.Context) (string, error) {
			if hangs.CompareAndSwap(true, false) {
				close(asked)
				<-release
			}
			return "token", nil
		},
	}).Open(mcptest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	close(cut)
	mcptest.Await(t, "the next stream", asked)
	defer close(release)
	closed := make(chan error, 1)
	go func() { closed <- c.Close(mcptest.Within(t)) }()
	if err := mcptest.Await(t, "Close", closed); err == nil || !strings.Contains(err.Error(), "Token") {
		t.Errorf("Close returned %v", err)
	}
}

// TestTokenOfTheRequest: the token that a server repeats is removed from its error, also if the
// connection has another one meanwhile.
func TestTokenOfTheRequest(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter, mcptest.Message, string){
		"an error": func(w http.ResponseWriter, m mcptest.Message, text string) { mcptest.ReplyError(w, m, -32000, text) },
		"another ID": func(w http.ResponseWriter, _ mcptest.Message, text string) {
			mcptest.ReplyError(w, mcptest.Message{ID: []byte(`"x"`)}, -32000, text)
		},
		"a status": func(w http.ResponseWriter, m mcptest.Message, text string) {
			w.WriteHeader(http.StatusForbidden)
			mcptest.ReplyError(w, m, -32000, text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, answer := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				switch {
				case m.Method != "tools/call":
					return false
				case calls.Add(1) == 1:
					close(arrived)
					<-answer
					refuse(w, m, "it had "+m.Header.Get("Authorization"))
				default:
					mcptest.Reply(w, m, `{"content":[]}`)
				}
				return true
			})
			var token atomic.Value
			token.Store("token-of-monday")
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
				ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"},
				Token:         func(context.Context) (string, error) { return token.Load().(string), nil },
			}))
			write, failed := mcptest.Tool(t, c, "write"), make(chan error, 1)
			go func() {
				_, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
				failed <- err
			}()
			mcptest.Await(t, "the call", arrived)
			token.Store("token-of-tuesday")
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
				t.Error(err)
			}
			close(answer)
			if err := mcptest.Await(t, "the end of the call", failed); err == nil || strings.Contains(err.Error(), "monday") || !strings.Contains(err.Error(), "it had") {
				t.Errorf("the call failed with %v", err)
			}
		})
	}
}

// TestLoginEndsDuringACall: the end of a login fails the next call, and the connection ends
// after the calls that the server works on.
func TestLoginEndsDuringACall(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			arrived, answer := make(chan struct{}), make(chan struct{})
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				close(arrived)
				<-answer
				mcptest.Reply(w, m, `{"content":[{"type":"text","text":"done"}]}`)
				return true
			})
			var ended atomic.Bool
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
				ClientOptions: mcpadapter.ClientOptions{Protocol: protocol},
				Token: func(context.Context) (string, error) {
					if ended.Load() {
						return "", ensemble.ErrNeedsLogin
					}
					return "token", nil
				},
			}))
			write, result := mcptest.Tool(t, c, "write"), make(chan error, 1)
			go func() {
				output, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
				if err == nil && canister.TextOf(output.Content) != "done" {
					err = fmt.Errorf("the result is %v", output.Content)
				}
				result <- err
			}()
			mcptest.Await(t, "the call", arrived)
			ended.Store(true)
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); !errors.Is(err, ensemble.ErrNeedsLogin) || mcptest.CodeOf(err) != invoker.Unauthorized {
				t.Errorf("a call without a login: %v", err)
			}
			if err := c.Err(); err != nil {
				t.Errorf("the connection was lost during a call: %v", err)
			}
			close(answer)
			if err := mcptest.Await(t, "the result", result); err != nil {
				t.Errorf("the call under way: %v", err)
			}
			mcptest.Await(t, "the loss", c.Lost())
			if err := c.Err(); !errors.Is(err, ensemble.ErrNeedsLogin) {
				t.Errorf("the connection was lost because of %v", err)
			}
		})
	}
}

// The connection stays if there is a login again before the last call of the time before ends.
func TestLoginComesBackDuringACall(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			arrived, answer := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				if calls.Add(1) == 1 {
					close(arrived)
					<-answer
				}
				mcptest.Reply(w, m, `{"content":[{"type":"text","text":"done"}]}`)
				return true
			})
			var ended atomic.Bool
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
				ClientOptions: mcpadapter.ClientOptions{Protocol: protocol},
				Token: func(context.Context) (string, error) {
					if ended.Load() {
						return "", ensemble.ErrNeedsLogin
					}
					return "token", nil
				},
			}))
			write, result := mcptest.Tool(t, c, "write"), make(chan error, 1)
			go func() {
				output, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
				if err == nil && canister.TextOf(output.Content) != "done" {
					err = fmt.Errorf("the result is %v", output.Content)
				}
				result <- err
			}()
			mcptest.Await(t, "the call", arrived)
			ended.Store(true)
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); !errors.Is(err, ensemble.ErrNeedsLogin) || mcptest.CodeOf(err) != invoker.Unauthorized {
				t.Errorf("a call without a login: %v", err)
			}
			ended.Store(false)
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
				t.Errorf("a call with a login again: %v", err)
			}
			close(answer)
			if err := mcptest.Await(t, "the result", result); err != nil {
				t.Errorf("the call under way: %v", err)
			}
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil || c.Err() != nil {
				t.Errorf("after the call: %v; the connection: %v", err, c.Err())
			}
		})
	}
}
