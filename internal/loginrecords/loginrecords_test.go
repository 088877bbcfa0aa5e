// SPDX-License-Identifier: Apache-2.0

package loginrecords_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/loginrecords"
	"github.com/consort-go/consort/internal/records"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/mcpadapter/login"
)

// table opens a database as a process does.
func table(t *testing.T, place string) records.Table {
	t.Helper()
	var store interface {
		Records() records.Table
		Close() error
	}
	var err error
	if strings.HasPrefix(place, "/") {
		store, err = sqlite.Open(place, nil)
	} else {
		store, err = postgres.Open(t.Context(), place, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store.Records()
}

// open returns the logins in a database with the key of a text.
func open(t *testing.T, place, text string) *loginrecords.Store {
	t.Helper()
	return scoped(table(t, place), text, "")
}

// scoped returns the logins of a scope.
func scoped(in records.Table, text, scope string) *loginrecords.Store {
	return loginrecords.New(func(context.Context) (records.Table, error) { return in, nil },
		func() ([]byte, error) { return login.KeyFromText(strings.Repeat(text, 32)) }, scope)
}

// clientOf returns a client of a server with the logins of a store.
func clientOf(t *testing.T, server string, store login.Store) *login.Client {
	t.Helper()
	c, err := login.New(&login.Options{URL: server, Identity: "ada", Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func update(t *testing.T, store login.Store, l *login.Login, now *login.Login) {
	t.Helper()
	if err := store.Update(t.Context(), l.Key, func(*login.Login) (*login.Login, error) { return now, nil }); err != nil {
		t.Fatal(err)
	}
}

// logIn lets a person log in.
func logIn(t *testing.T, c *login.Client) *login.Login {
	t.Helper()
	l, err := c.Login(t.Context(), &login.Prompt{Visit: func(_ context.Context, address string) error {
		response, err := http.Get(authserver.Redirect(t, http.DefaultTransport, address).String())
		if err == nil {
			response.Body.Close()
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMachinesShareLogins: a login at one machine is used by the others, and 8 processes with an
// expired token make one refresh and ask the person once.
func TestMachinesShareLogins(t *testing.T) {
	for name, place := range map[string]func(testing.TB) string{
		"SQLite": func(tb testing.TB) string { return filepath.Join(tb.TempDir(), "talks.db") }, "PostgreSQL": pgtest.DSN,
	} {
		t.Run(name, func(t *testing.T) {
			at := place(t)
			s, server := authserver.Start(t, authserver.Behaviour{}, http.NotFoundHandler())
			store := open(t, at, "k")
			l := logIn(t, clientOf(t, server, store))
			if token, err := clientOf(t, server, open(t, at, "k")).Token(t.Context()); err != nil || token != string(l.AccessToken) {
				t.Errorf("another machine: %v", err)
			}
			old := *l
			old.Expiry = time.Now().Add(-time.Minute)
			update(t, store, l, &old)
			var processes sync.WaitGroup
			for range 8 {
				processes.Go(func() {
					cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMachine$")
					cmd.Env = append(os.Environ(), "LOGIN_PLACE="+at, "LOGIN_SERVER="+server)
					out, err := cmd.CombinedOutput()
					_, token, _ := strings.Cut(string(out), "token=")
					token, _, _ = strings.Cut(token, "\n")
					if err != nil || !s.Accepts(token, server) {
						t.Errorf("a process ended with %v: %s", err, out)
					}
				})
			}
			processes.Wait()
			if refreshed, asked := s.Count("/token refresh_token"), s.Count("/authorize"); refreshed != 1 || asked != 1 {
				t.Errorf("%d refreshes, and the person was asked %d times", refreshed, asked)
			}
			update(t, store, l, nil)
			if _, err := clientOf(t, server, open(t, at, "k")).Token(t.Context()); err == nil {
				t.Error("after a logout at one machine, another one has a token")
			}
		})
	}
}

// TestMachine is one of the processes of TestMachinesShareLogins.
func TestMachine(t *testing.T) {
	place := os.Getenv("LOGIN_PLACE")
	if place == "" {
		return
	}
	token, err := clientOf(t, os.Getenv("LOGIN_SERVER"), open(t, place, "k")).Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("token=%s\n", token)
}

// TestAnotherKey: a machine with another key is told so, before it asks a person to log in, and
// changes nothing. The database has no token in plain text, and no login under another name.
func TestAnotherKey(t *testing.T) {
	at := filepath.Join(t.TempDir(), "talks.db")
	ours := open(t, at, "k")
	a := &login.Login{Key: login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ada"}, AccessToken: "secret-access-token"}
	b := &login.Login{Key: login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ben"}, AccessToken: "secret-access-token"}
	update(t, ours, a, a)
	update(t, ours, b, b)
	other := open(t, at, "x")
	for what, err := range map[string]error{
		"Check":  other.Check(t.Context()),
		"Update": other.Update(t.Context(), a.Key, func(*login.Login) (*login.Login, error) { t.Error("it is changed"); return nil, nil }),
		"List":   func() error { _, err := other.List(t.Context()); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "another key") || !strings.Contains(err.Error(), "CONSORT_LOGIN_KEY") {
			t.Errorf("%s with another key: %v", what, err)
		}
	}
	in := table(t, at)
	stored, err := in.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, sealed := range stored {
		if bytes.Contains(sealed, []byte("secret-access-token")) || strings.Contains(name, "ada") {
			t.Errorf("%s is in plain text", name)
		}
		if name != "key" {
			names = append(names, name)
		}
	}
	if all, err := ours.List(t.Context()); err != nil || len(all) != 2 || len(names) != 2 {
		t.Fatalf("%d logins, %d records, %v", len(all), len(names), err)
	}
	if err := in.Update(t.Context(), names[0], func([]byte) ([]byte, error) { return stored[names[1]], nil }); err != nil {
		t.Fatal(err)
	}
	if all, err := ours.List(t.Context()); err == nil || len(all) != 1 {
		t.Errorf("with the login of another identity in its place: %d logins, %v", len(all), err)
	}
}

// countingTable is a table in memory that counts how often all of it is read.
type countingTable struct {
	mu      sync.Mutex
	records map[string][]byte
	reads   int
}

func (c *countingTable) All(context.Context) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return maps.Clone(c.records), nil
}

func (c *countingTable) Get(_ context.Context, name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[name], nil
}

func (c *countingTable) Update(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	after, err := change(c.records[name])
	if err == nil {
		c.records[name] = after
	}
	return err
}

// TestOneLoginIsCompared: a client that compares its login with the stored one does not read those
// of all identities, and notices a new login, one at another issuer, and a logout.
func TestOneLoginIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &countingTable{records: map[string][]byte{}}
		store := scoped(in, "k", "team")
		c := clientOf(t, "https://r", store)
		has := func(want string, reads int) {
			t.Helper()
			in.reads = 0
			time.Sleep(time.Minute)
			if token, err := c.Token(t.Context()); token != want || in.reads != reads {
				t.Errorf("the token is %q, want %q (%v); all logins were read %d times, want %d", token, want, err, in.reads, reads)
			}
		}
		put := func(issuer, token string) {
			key := login.Key{Issuer: issuer, Resource: "https://r", Identity: "ada"}
			update(t, store, &login.Login{Key: key}, &login.Login{Key: key, AccessToken: login.Secret(token), Since: time.Now()})
		}
		put("https://i", "first")
		has("first", 1)
		has("first", 0)
		put("https://i", "second")
		has("second", 0)
		put("https://j", "third")
		update(t, store, &login.Login{Key: login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ada"}}, nil)
		has("third", 1)
		update(t, store, &login.Login{Key: login.Key{Issuer: "https://j", Resource: "https://r", Identity: "ada"}}, nil)
		has("", 1)
	})
}

// TestScopes: configurations with different scopes have different logins in one table with one
// key, and one that is copied to the place of another is refused.
func TestScopes(t *testing.T) {
	in := table(t, filepath.Join(t.TempDir(), "talks.db"))
	key := login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ada"}
	stores := map[string]*loginrecords.Store{}
	for _, scope := range []string{"", "team-a", "team-b"} {
		stores[scope] = scoped(in, "k", scope)
		update(t, stores[scope], &login.Login{Key: key}, &login.Login{Key: key, AccessToken: login.Secret("of " + scope)})
	}
	for scope, store := range stores {
		all, err := store.List(t.Context())
		if err != nil || len(all) != 1 || all[0].AccessToken != login.Secret("of "+scope) {
			t.Errorf("%q lists %+v, %v", scope, all, err)
		}
		if again, err := scoped(in, "k", scope).List(t.Context()); err != nil || len(again) != 1 {
			t.Errorf("another machine of %q lists %+v, %v", scope, again, err)
		}
	}
	other := login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ben"}
	update(t, stores["team-b"], &login.Login{Key: other}, nil)
	update(t, stores["team-a"], &login.Login{Key: key}, nil)
	if all, err := stores["team-b"].List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("after a logout in another scope: %+v, %v", all, err)
	}
	stored, err := in.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, sealed := range stored { // that of team-b, which replaces that without a scope
		if _, rest, found := strings.Cut(name, "-"); found {
			if err := in.Update(t.Context(), rest, func([]byte) ([]byte, error) { return sealed, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(name, "team") {
			t.Errorf("the name of the scope is in the name of a record, %s", name)
		}
	}
	if all, err := stores[""].List(t.Context()); err == nil || len(all) != 0 {
		t.Errorf("the login of another scope is read: %+v, %v", all, err)
	}
}

// TestFormerLogins: logins of the first version, which knew no scopes, are read without a scope.
func TestFormerLogins(t *testing.T) {
	in := table(t, filepath.Join(t.TempDir(), "talks.db"))
	text, err := os.ReadFile(filepath.Join("testdata", "version1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var former map[string][]byte
	if err := json.Unmarshal(text, &former); err != nil {
		t.Fatal(err)
	}
	for name, sealed := range former {
		if err := in.Update(t.Context(), name, func([]byte) ([]byte, error) { return sealed, nil }); err != nil {
			t.Fatal(err)
		}
	}
	store := scoped(in, "k", "")
	if all, err := store.List(t.Context()); err != nil || len(all) != 1 || all[0].Identity != "ada" || all[0].RefreshToken != "refresh" {
		t.Errorf("%+v, %v", all, err)
	}
	err = store.Update(t.Context(), login.Key{Issuer: "https://i", Resource: "https://r", Identity: "ada"}, func(l *login.Login) (*login.Login, error) {
		if l == nil || l.AccessToken != "access" {
			t.Errorf("updated is %+v", l)
		}
		return l, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDamagedLogin: a login that is damaged is replaced by the next one, and others log in beside it.
func TestDamagedLogin(t *testing.T) {
	t.Run("foreign", func(t *testing.T) {
		testDamagedLogin(t, func(string) ([]byte, error) { return []byte("damaged"), nil })
	})
	t.Run("not a login", func(t *testing.T) {
		testDamagedLogin(t, func(name string) ([]byte, error) {
			key, err := login.KeyFromText(strings.Repeat("k", 32))
			if err != nil {
				return nil, err
			}
			return loginkey.Seal(key, name, []byte("[]"))
		})
	})
}

func testDamagedLogin(t *testing.T, damaged func(name string) ([]byte, error)) {
	at := filepath.Join(t.TempDir(), "talks.db")
	_, server := authserver.Start(t, authserver.Behaviour{}, http.NotFoundHandler())
	store := open(t, at, "k")
	logIn(t, clientOf(t, server, store))
	in := table(t, at)
	stored, err := in.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name := range stored {
		if name != "key" {
			if err := in.Update(t.Context(), name, func([]byte) ([]byte, error) { return damaged(name) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, identity := range []string{"ben", "ada"} { // ada has the damaged one
		c, err := login.New(&login.Options{URL: server, Identity: identity, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Token(t.Context()); !errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Errorf("%s is told %v", identity, err)
		}
		l := logIn(t, c)
		if token, err := c.Token(t.Context()); err != nil || token != string(l.AccessToken) {
			t.Errorf("after the login of %s: %v", identity, err)
		}
	}
	if all, err := store.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("at the end there are %d logins, %v", len(all), err)
	}
}
