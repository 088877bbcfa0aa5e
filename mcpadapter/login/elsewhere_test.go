// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// stored returns a login with an access token that does not expire.
func stored(token string) *login.Login {
	return &login.Login{
		Key:         login.Key{Issuer: issuer, Resource: resource},
		AccessToken: login.Secret(token), Since: time.Now(), Obtained: time.Now(),
	}
}

// has fails the test unless the token of c is want, or a login is needed if want is empty.
func has(t testing.TB, c *login.Client, want string) {
	t.Helper()
	token, err := c.Token(t.Context())
	if token != want || (want == "") != errors.Is(err, ensemble.ErrNeedsLogin) {
		t.Errorf("the token is %q, want %q (%v)", token, want, err)
	}
}

// brokenStore cannot be read while broken is set.
type brokenStore struct {
	*login.Memory
	broken func(context.Context) error
}

func (s *brokenStore) List(ctx context.Context) ([]*login.Login, error) {
	if s.broken != nil {
		return nil, s.broken(ctx)
	}
	return s.Memory.List(ctx)
}

// A login and a logout in another process take effect within half a minute, and a store
// that cannot be read changes nothing.
func TestLoginInAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, network := world(authserver.Behaviour{})
		store := &brokenStore{Memory: login.NewMemory()}
		c := newClient(t, network, login.Options{Store: store})
		put(t, store, stored("ada"))
		has(t, c, "ada")
		time.Sleep(time.Minute)
		put(t, store, stored("bob"))
		has(t, c, "bob")
		for _, broken := range []func(context.Context) error{
			func(context.Context) error { return errors.New("the store is away") },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		} {
			time.Sleep(time.Minute)
			store.broken = broken
			before := time.Now()
			has(t, c, "bob")
			if took := time.Since(before); took > 5*time.Second {
				t.Errorf("a store that does not answer delays a call by %s", took)
			}
			store.broken = nil
		}
		time.Sleep(time.Minute)
		gone := stored("")
		if err := store.Update(t.Context(), gone.Key, func(*login.Login) (*login.Login, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		has(t, c, "")
	})
}

// A client that compares its login with the stored one decrypts no others.
func TestOneFileIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, network := world(authserver.Behaviour{})
		decrypted := 0
		store := login.NewFiles(t.TempDir(), func() ([]byte, error) {
			decrypted++
			return login.KeyFromText(strings.Repeat("k", 32))
		})
		put(t, store, stored("ada"))
		put(t, store, &login.Login{Key: login.Key{Issuer: issuer, Resource: "https://other.example/mcp"}})
		c := newClient(t, network, login.Options{Store: store})
		has(t, c, "ada")
		time.Sleep(time.Minute)
		decrypted = 0
		has(t, c, "ada")
		if decrypted != 1 {
			t.Errorf("%d logins were decrypted", decrypted)
		}
	})
}

// A logout in another process takes effect also if the store has a login that is damaged, which
// does not keep another one from being used, replaced and removed.
func TestLogoutBesideDamagedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, network := world(authserver.Behaviour{})
		folder := t.TempDir()
		store := login.NewFiles(folder, func() ([]byte, error) { return login.KeyFromText(strings.Repeat("k", 32)) })
		put(t, store, stored("ada"))
		if err := os.WriteFile(filepath.Join(folder, "other.login"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := newClient(t, network, login.Options{Store: store})
		has(t, c, "ada")
		time.Sleep(time.Minute)
		put(t, store, stored("bob"))
		has(t, c, "bob")
		refused := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}
		refused.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		_ = c.Authorize(t.Context(), &http.Request{}, refused)
		if l, err := c.Stored(t.Context()); err != nil || !slices.Contains(l.Wanted, "write") {
			t.Errorf("after a refusal the login is %+v, %v", l, err)
		}
		other := newClient(t, network, login.Options{Store: store})
		if found, err := other.Logout(t.Context()); !found || err == nil || !strings.Contains(err.Error(), "no way to revoke") {
			t.Errorf("logging out: %v, %v", found, err)
		}
		time.Sleep(time.Minute)
		has(t, c, "")
	})
}

// If another process has logged in for more rights, a call that was refused is made again, but not
// if it has only renewed the login.
func TestStepUpInAnotherProcess(t *testing.T) {
	_, network := world(authserver.Behaviour{})
	store := login.NewMemory()
	c := newClient(t, network, login.Options{Store: store})
	narrow := stored("narrow")
	put(t, store, narrow)
	has(t, c, "narrow")
	refuse := func(token string) error {
		refused := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}
		refused.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		return c.Authorize(t.Context(), &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}, refused)
	}
	if err := refuse("narrow"); err == nil {
		t.Error("no login is asked for")
	}
	renewed := stored("renewed")
	renewed.Since = narrow.Since
	put(t, store, renewed)
	if err := refuse("narrow"); err == nil {
		t.Error("no login is asked for, with a login that was renewed")
	}
	if l, err := c.Stored(t.Context()); err != nil || !slices.Contains(l.Wanted, "write") {
		t.Errorf("the login is %+v, %v", l, err)
	}
	put(t, store, stored("wide"))
	if err := refuse("narrow"); err != nil {
		t.Errorf("after the login: %v", err)
	}
	has(t, c, "wide")
	if err := refuse("wide"); err == nil {
		t.Error("no login is asked for, with the newest token")
	}
}
