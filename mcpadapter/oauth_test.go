// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
