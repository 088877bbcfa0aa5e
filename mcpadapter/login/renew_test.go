// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/login"
)

// storedLogin logs in by the device flow, which needs no socket and so works in a bubble.
func storedLogin(t testing.TB, s *authserver.Server, network http.RoundTripper, store login.Store) {
	t.Helper()
	c := newClient(t, network, login.Options{Store: store})
	s.Behave(func(b *authserver.Behaviour) { b.Device = true })
	_, err := c.Login(t.Context(), &login.Prompt{Enter: func(context.Context, login.Code) error { s.Enter(); return nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// accepted fails the test unless c has a token that the server accepts.
func accepted(t testing.TB, s *authserver.Server, c *login.Client) {
	t.Helper()
	if token, err := c.Token(t.Context()); err != nil || !s.Accepts(token, resource) {
		t.Errorf("the token is not accepted: %v", err)
	}
}

// TestRestartAndRefresh: a login lasts over a day of hourly tokens and restarts, and the
// person is asked once.
func TestRestartAndRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		for range 48 {
			time.Sleep(30 * time.Minute)
			accepted(t, s, newClient(t, network, login.Options{Store: store}))
		}
		if n := s.Count("/token refresh_token"); n < 20 || n > 30 {
			t.Errorf("the tokens were renewed %d times in a day", n)
		}
		if n := s.Count("/device"); n != 1 {
			t.Errorf("the person was asked %d times", n)
		}
	})
}

// TestAuthorizationServerAway: whatever an authorization server answers for an hour, the
// login works again afterwards without a person.
func TestAuthorizationServerAway(t *testing.T) {
	for name, fail := range map[string]func(s *authserver.Server, network authserver.Network) (restore func()){
		"status 500": failing(500), "status 502": failing(502), "status 503": failing(503), "status 429": failing(429), "status 404": failing(404),
		"connection refused": func(s *authserver.Server, network authserver.Network) func() {
			delete(network, "auth.example")
			return func() { network["auth.example"] = s }
		},
		"no answer": func(s *authserver.Server, network authserver.Network) func() {
			network["auth.example"] = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			return func() { network["auth.example"] = s }
		},
		"a page instead of JSON": func(s *authserver.Server, network authserver.Network) func() {
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>maintenance</html>")) })
			return func() { network["auth.example"] = s }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network := world(authserver.Behaviour{})
				store := login.NewMemory()
				storedLogin(t, s, network, store)
				c := newClient(t, network, login.Options{Store: store})
				time.Sleep(time.Hour)
				restore := fail(s, network)
				for range 60 {
					_, err := c.Token(t.Context())
					if err == nil || errors.Is(err, ensemble.ErrNeedsLogin) {
						t.Fatalf("without the authorization server: %v", err)
					}
					time.Sleep(time.Minute)
				}
				restore()
				accepted(t, s, c)
				accepted(t, s, newClient(t, network, login.Options{Store: store}))
				if n := s.Count("/device"); n != 1 {
					t.Errorf("the person was asked %d times", n)
				}
			})
		})
	}
}

func failing(status int) func(*authserver.Server, authserver.Network) func() {
	return func(s *authserver.Server, _ authserver.Network) func() {
		s.Fail(func(*http.Request) int { return status })
		return func() { s.Fail(nil) }
	}
}

// TestAwayFailure: a call that finds the authorization server away can be repeated.
func TestAwayFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		c := newClient(t, network, login.Options{Store: store})
		time.Sleep(time.Hour)
		s.Fail(func(*http.Request) int { return 503 })
		before := s.Count("/token refresh_token")
		for range 100 {
			_, err := c.Token(t.Context())
			if failure := invoker.AsFailure(err); failure.Code != invoker.Unavailable || !failure.Retryable {
				t.Fatalf("the failure is %+v", failure)
			}
		}
		if n := s.Count("/token refresh_token") - before; n != 1 {
			t.Errorf("the authorization server was asked %d times at one moment", n)
		}
	})
}

// TestTokenIsRenewedEarly: a token is renewed before it expires, and used while that is
// not possible.
func TestTokenIsRenewedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		c := newClient(t, network, login.Options{Store: store})
		time.Sleep(time.Hour - 30*time.Second)
		s.Fail(func(*http.Request) int { return 503 })
		accepted(t, s, c)
		s.Fail(nil)
		time.Sleep(10 * time.Second)
		accepted(t, s, c)
		if n := s.Count("/token refresh_token"); n != 2 {
			t.Errorf("renewing was tried %d times", n)
		}
	})
}

// TestLoginEnds: only invalid_grant ends a login, and then all clients say so.
func TestLoginEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		c := newClient(t, network, login.Options{Store: store, Hint: "type: consort login files"})
		s.RevokeAll()
		time.Sleep(time.Hour)
		for range 3 {
			_, err := c.Token(t.Context())
			if !errors.Is(err, ensemble.ErrNeedsLogin) {
				t.Fatalf("after the end: %v", err)
			}
			if got, want := err.Error(), "needs a login: the authorization server ended the login: invalid_grant; type: consort login files"; got != want {
				t.Errorf("the error is %q, want %q", got, want)
			}
			if failure := invoker.AsFailure(err); failure.Code != invoker.Unauthorized || failure.Retryable {
				t.Errorf("the failure is %+v", failure)
			}
		}
		if n := s.Count("/token refresh_token"); n != 1 {
			t.Errorf("renewing was tried %d times", n)
		}
		if l, _ := c.Stored(t.Context()); l == nil || l.Ended == "" || l.RefreshToken != "" {
			t.Errorf("stored is %+v", l)
		}
		storedLogin(t, s, network, store) // in another process
		accepted(t, s, c)
	})
}

// TestRejectedToken: a token that the server rejects is renewed, once.
func TestRejectedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{ExpiresIn: "-"})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		c := newClient(t, network, login.Options{Store: store})
		time.Sleep(2 * time.Hour) // the server's own limit is an hour
		token, err := c.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := rejected(t, c, token); err != nil {
			t.Fatal(err)
		}
		accepted(t, s, c)
		fresh, _ := c.Token(t.Context())
		if err := rejected(t, c, fresh); !errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Errorf("a new token that is rejected: %v", err)
		}
		if n := s.Count("/token refresh_token"); n != 1 {
			t.Errorf("renewing was tried %d times", n)
		}
		if l, _ := c.Stored(t.Context()); l == nil || l.RefreshToken == "" {
			t.Error("the login was lost")
		}
	})
}

// TestServerRejectsEveryToken: if the server rejects a renewed token too, a login is needed, and
// the token is not renewed again.
func TestServerRejectsEveryToken(t *testing.T) {
	s, address := authserver.Start(t, authserver.Behaviour{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	store := login.NewMemory()
	c := newClient(t, http.DefaultTransport, login.Options{URL: address, Store: store})
	old := *loggedIn(t, c, http.DefaultTransport)
	old.Obtained = time.Now().Add(-time.Minute)
	put(t, store, &old)
	c = newClient(t, http.DefaultTransport, login.Options{URL: address, Store: store})
	_, err := mcpadapter.HTTP(address, &mcpadapter.HTTPOptions{
		ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}, // one request
		Token:         c.Token, OAuth: c,
	}).Open(within(t))
	if !errors.Is(err, ensemble.ErrNeedsLogin) || !strings.Contains(err.Error(), "the server rejects a new token") {
		t.Errorf("Open: %v", err)
	}
	if n := s.Count("/token refresh_token"); n != 1 {
		t.Errorf("the token was renewed %d times", n)
	}
}

// rejected tells c that the server rejected a token.
func rejected(t testing.TB, c *login.Client, token string) error {
	request, _ := http.NewRequest(http.MethodPost, resource, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	return c.Authorize(t.Context(), request, &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody})
}

// TestStepUp: a call for which the token has too few scopes fails, the connection stays,
// and the next login asks for more, with a client that is registered for them.
func TestStepUp(t *testing.T) {
	s, network := world(authserver.Behaviour{Demanded: "read", Granted: "read"})
	c := newClient(t, network, login.Options{})
	loggedIn(t, c, network)
	refused := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}
	if err := c.Authorize(t.Context(), &http.Request{}, refused); err != nil {
		t.Errorf("a refusal for another reason: %v", err)
	}
	refused.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write admin"`)
	err := c.Authorize(t.Context(), &http.Request{}, refused)
	if err == nil || errors.Is(err, ensemble.ErrNeedsLogin) || invoker.AsFailure(err).Code != invoker.Unauthorized {
		t.Errorf("too few scopes: %v", err)
	}
	asked := ""
	agreed := agree(t, network)
	_, err = c.Login(within(t), &login.Prompt{Visit: func(ctx context.Context, address string) error {
		u, _ := url.Parse(address)
		asked = u.Query().Get("scope")
		return agreed.Visit(ctx, address)
	}})
	if asked != "admin read write" || err != nil {
		t.Errorf("the login asked for the scopes %q (%v)", asked, err)
	}
	refused.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Repeat("x", 1<<16)+`"`)
	_ = c.Authorize(t.Context(), &http.Request{}, refused)
	if l, err := c.Stored(t.Context()); err != nil || len(strings.Join(l.Wanted, " ")) > 1<<12 {
		t.Errorf("scopes of any length are stored (%v)", err)
	}
	accepted(t, s, c)
}

// TestStepUpWithConfiguredScopes: a login asks for the configured scopes, so that it can help only
// if the server wants these.
func TestStepUpWithConfiguredScopes(t *testing.T) {
	for scopes, helps := range map[string]bool{"write": false, "read write": false, "": false, "read": true} {
		_, network := world(authserver.Behaviour{Demanded: "read", Granted: "read"})
		c := newClient(t, network, login.Options{Scopes: []string{"read", "list"}})
		loggedIn(t, c, network)
		refused := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}
		challenge := `Bearer error="insufficient_scope"`
		if scopes != "" {
			challenge += `, scope="` + scopes + `"`
		}
		refused.Header.Set("WWW-Authenticate", challenge)
		err := c.Authorize(t.Context(), &http.Request{}, refused)
		if err == nil || strings.Contains(err.Error(), "configuration") == helps {
			t.Errorf("%q is wanted: %v", scopes, err)
		}
	}
}

// TestScopesOfAnotherServer: if the server has moved to another authorization server, that one is
// not asked for the scopes of the former one.
func TestScopesOfAnotherServer(t *testing.T) {
	_, network := world(authserver.Behaviour{Demanded: "read"})
	key := login.Key{Issuer: issuer, Resource: resource}
	same := &login.Login{Key: key, Scopes: []string{"kept"}, Since: time.Now().Add(-time.Hour)}
	moved := &login.Login{Key: key, Scopes: []string{"old"}, Wanted: []string{"older"}, Since: time.Now()}
	moved.Issuer = "https://former.example"
	for want, stored := range map[string][]*login.Login{"read": {moved}, "kept read": {moved, same}} {
		store := login.NewMemory()
		for _, l := range stored {
			put(t, store, l)
		}
		r, err := newClient(t, network, login.Options{Store: store}).Begin(within(t), "http://127.0.0.1/callback")
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(r.URL)
		if got := u.Query().Get("scope"); err != nil || got != want || strings.Join(r.Scopes, " ") != want {
			t.Errorf("the scopes are %q, want %q (%v)", got, want, err)
		}
	}
}

// TestStepUpByDevice: so does a login by the device flow.
func TestStepUpByDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{Demanded: "read"})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		refused := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}
		refused.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		c := newClient(t, network, login.Options{Store: store})
		_ = c.Authorize(t.Context(), &http.Request{}, refused)
		storedLogin(t, s, network, store)
		if l, err := c.Stored(t.Context()); err != nil || strings.Join(l.Scopes, " ") != "read write" {
			t.Errorf("stored is %+v, %v", l, err)
		}
	})
}

// TestCallersShareARenewal: in one process, all callers use one renewal, which goes on
// when they give up.
func TestCallersShareARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := login.NewMemory()
		storedLogin(t, s, network, store)
		time.Sleep(time.Hour)
		reached, release := make(chan struct{}), make(chan struct{})
		network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(reached)
			<-release
			s.ServeHTTP(w, r)
		})
		c := newClient(t, network, login.Options{Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if _, err := c.Token(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that gave up got %v", err)
				}
			})
		}
		<-reached
		cancel()
		callers.Wait()
		close(release)
		_ = c.Close() // waits
		if l, _ := c.Stored(t.Context()); l == nil || !s.Accepts(string(l.AccessToken), resource) {
			t.Error("the renewed token was lost")
		}
		if _, err := c.Token(t.Context()); err != nil {
			t.Errorf("the token that is still valid: %v", err)
		}
	})
}

// fullStore cannot store anything while full is set.
type fullStore struct {
	*login.Memory
	full bool
}

var errFull = errors.New("no space left on device")

func (f *fullStore) Update(ctx context.Context, key login.Key, change func(*login.Login) (*login.Login, error)) error {
	return f.Memory.Update(ctx, key, func(l *login.Login) (*login.Login, error) {
		l, err := change(l)
		if err == nil && f.full {
			return nil, errFull
		}
		return l, err
	})
}

// TestTokenThatCannotBeStored: a rotated refresh token is not lost while this process
// lives, also while the authorization server is away.
func TestTokenThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{})
		store := &fullStore{Memory: login.NewMemory()}
		storedLogin(t, s, network, store)
		c := newClient(t, network, login.Options{Store: store})
		store.full = true
		for range 3 {
			time.Sleep(time.Hour)
			accepted(t, s, c)
		}
		s.Fail(func(*http.Request) int { return 503 })
		time.Sleep(time.Hour)
		if _, err := c.Token(t.Context()); err == nil || errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Errorf("without the authorization server: %v", err)
		}
		s.Fail(nil)
		time.Sleep(time.Minute)
		accepted(t, s, c)
		store.full = false
		time.Sleep(time.Hour)
		accepted(t, s, c)
		accepted(t, s, newClient(t, network, login.Options{Store: store}))
	})
}

// TestMachine: a client with its own credentials needs no person and stores nothing.
func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{Challenges: []string{}})
		c := newClient(t, network, login.Options{Machine: true, ClientID: "machine", ClientSecret: "machine-secret", Issuer: issuer})
		if token, err := c.Token(t.Context()); token != "" || err != nil {
			t.Errorf("before the server asks: %q, %v", token, err)
		}
		if err := rejected(t, c, ""); err != nil {
			t.Fatal(err)
		}
		accepted(t, s, c)
		time.Sleep(2 * time.Hour)
		accepted(t, s, c)
		if n := s.Count("/token client_credentials"); n != 2 {
			t.Errorf("%d tokens were requested", n)
		}
		if l, _ := c.Stored(t.Context()); l != nil {
			t.Error("a login was stored")
		}
		bad := newClient(t, network, login.Options{Machine: true, ClientID: "machine", ClientSecret: "wrong", Issuer: issuer})
		if err := rejected(t, bad, ""); err == nil || errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Errorf("with a wrong secret: %v", err)
		}
	})
}
