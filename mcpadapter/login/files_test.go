// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// example returns a login with recognisable tokens.
func example(resource string) *login.Login {
	return &login.Login{
		Key:         login.Key{Issuer: issuer, Resource: resource, Identity: "ada"},
		AccessToken: "the-access-token", RefreshToken: "the-refresh-token", Since: time.Now(),
	}
}

func put(t testing.TB, store login.Store, l *login.Login) {
	t.Helper()
	if err := store.Update(t.Context(), l.Key, func(*login.Login) (*login.Login, error) { return l, nil }); err != nil {
		t.Fatal(err)
	}
}

func TestStores(t *testing.T) {
	for name, store := range map[string]login.Store{
		"memory": login.NewMemory(),
		"files":  login.NewFiles(filepath.Join(t.TempDir(), "logins"), nil),
	} {
		t.Run(name, func(t *testing.T) {
			if all, err := store.List(t.Context()); len(all) > 0 || err != nil {
				t.Fatalf("an empty store has %v, %v", all, err)
			}
			one, two := example(resource), example("https://other.example/mcp")
			put(t, store, one)
			put(t, store, two)
			failed := errors.New("failed")
			if err := store.Update(t.Context(), one.Key, func(*login.Login) (*login.Login, error) { return nil, failed }); !errors.Is(err, failed) {
				t.Errorf("the error of change became %v", err)
			}
			err := store.Update(t.Context(), one.Key, func(l *login.Login) (*login.Login, error) {
				if l == nil || l.AccessToken != one.AccessToken || l.Key != one.Key {
					t.Errorf("stored is %+v", l)
				}
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
			if all, err := store.List(t.Context()); len(all) != 1 || all[0].Key != two.Key || err != nil {
				t.Errorf("the store has %v, %v", all, err)
			}
		})
	}
}

// TestStoresSurviveAPanic: an update that panics changes nothing, and the one that waits for it
// goes on.
func TestStoresSurviveAPanic(t *testing.T) {
	for name, store := range map[string]login.Store{"memory": login.NewMemory(), "files": login.NewFiles(t.TempDir(), nil)} {
		t.Run(name, func(t *testing.T) {
			one := example(resource)
			put(t, store, one)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			waited := make(chan error, 1)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was hidden")
					}
				}()
				_ = store.Update(ctx, one.Key, func(*login.Login) (*login.Login, error) {
					go func() {
						waited <- store.Update(ctx, one.Key, func(l *login.Login) (*login.Login, error) {
							if l == nil || l.AccessToken != one.AccessToken {
								t.Errorf("after the panic the store has %+v", l)
							}
							return nil, nil
						})
					}()
					panic("in change")
				})
			}()
			if err := <-waited; err != nil {
				t.Errorf("the next update: %v", err)
			}
		})
	}
}

// TestFilesAreEncrypted: no file has a token or the name of a server in it, and only the
// owner can read the files.
func TestFilesAreEncrypted(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logins")
	put(t, login.NewFiles(folder, nil), example(resource))
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the permissions %s", path, info.Mode())
		}
		if entry.IsDir() || err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{"the-access-token", "the-refresh-token", "mcp.example", "ada"} {
			if bytes.Contains(text, []byte(secret)) || strings.Contains(filepath.Base(path), secret) {
				t.Errorf("%s has %q in it", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDamagedFile: a login that was changed, exchanged with another one, or written with
// another key is refused, and the others still work.
func TestDamagedFile(t *testing.T) {
	for name, damage := range map[string]func(path, other string) error{
		"changed": func(path, _ string) error {
			text, err := os.ReadFile(path)
			text[len(text)-20] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
		"cut":       func(path, _ string) error { return os.Truncate(path, 20) },
		"empty":     func(path, _ string) error { return os.Truncate(path, 0) },
		"exchanged": func(path, other string) error { return copyFile(other, path) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			store := login.NewFiles(folder, nil)
			put(t, store, example(resource))
			first, _ := filepath.Glob(filepath.Join(folder, "*.login"))
			put(t, store, example("https://other.example/mcp"))
			both, _ := filepath.Glob(filepath.Join(folder, "*.login"))
			other := both[0]
			if other == first[0] {
				other = both[1]
			}
			if err := damage(first[0], other); err != nil {
				t.Fatal(err)
			}
			all, err := store.List(t.Context())
			if err == nil || !strings.Contains(err.Error(), first[0]) {
				t.Errorf("the error is %v", err)
			}
			if len(all) != 1 || all[0].Resource != "https://other.example/mcp" {
				t.Errorf("the store has %v", all)
			}
		})
	}
}

// TestLoginBesideDamagedFiles: whatever is wrong with the login at one server, people log in at the
// others, and at that one again. Until then they are told that a login is needed, and that one is
// damaged.
func TestLoginBesideDamagedFiles(t *testing.T) {
	key := bytes.Repeat([]byte("k"), loginkey.Size)
	for name, damage := range map[string]func(path string) ([]byte, error){
		"foreign": func(string) ([]byte, error) { return []byte("damaged"), nil },
		"another key": func(path string) ([]byte, error) {
			return loginkey.Seal(bytes.Repeat([]byte("x"), loginkey.Size), filepath.Base(path), []byte("{}"))
		},
		"not a login": func(path string) ([]byte, error) { return loginkey.Seal(key, filepath.Base(path), []byte("[]")) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			store := login.NewFiles(folder, func() ([]byte, error) { return key, nil })
			_, network := world(authserver.Behaviour{})
			c := newClient(t, network, login.Options{Store: store})
			loggedIn(t, c, network)
			path, _ := filepath.Glob(filepath.Join(folder, "*.login"))
			text, err := damage(path[0])
			if err = errors.Join(err, os.WriteFile(path[0], text, 0o600)); err != nil {
				t.Fatal(err)
			}
			err = store.Update(t.Context(), login.Key{Issuer: issuer, Resource: resource}, func(l *login.Login) (*login.Login, error) { return l, nil })
			if left, _ := os.ReadFile(path[0]); err == nil || !bytes.Equal(left, text) {
				t.Errorf("without a new login the file is now %q, %v", left, err)
			}
			for _, identity := range []string{"ben", ""} { // the damaged one has no identity
				c := newClient(t, network, login.Options{Store: store, Identity: identity})
				_, err := c.Token(within(t))
				if !errors.Is(err, ensemble.ErrNeedsLogin) || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), folder) {
					t.Errorf("%q is told %v", identity, err)
				}
				l := loggedIn(t, c, network)
				if token, err := newClient(t, network, login.Options{Store: store, Identity: identity}).Token(within(t)); err != nil || token != string(l.AccessToken) {
					t.Errorf("after the login of %q: %v", identity, err)
				}
			}
			if all, err := store.List(t.Context()); err != nil || len(all) != 2 {
				t.Errorf("at the end there are %d logins, %v", len(all), err)
			}
		})
	}
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, text, 0o600))
}

func TestKeyFromText(t *testing.T) {
	if _, err := login.KeyFromText("short"); err == nil {
		t.Error("a short key is accepted")
	}
	folder := t.TempDir()
	with := func(text string) *login.Files {
		return login.NewFiles(folder, func() ([]byte, error) { return login.KeyFromText(text) })
	}
	put(t, with(strings.Repeat("a", 40)), example(resource))
	if all, err := with(strings.Repeat("a", 40)).List(t.Context()); len(all) != 1 || err != nil {
		t.Errorf("with the same key: %v, %v", all, err)
	}
	if all, err := with(strings.Repeat("b", 40)).List(t.Context()); len(all) != 0 || err == nil {
		t.Errorf("with another key: %v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "key")); err == nil {
		t.Error("the key was written to a file")
	}
}

// TestProcessesShareARefresh: when the token of a login has expired, eight processes that
// need it at the same time refresh it once. The authorization server ends a login whose
// refresh token is used twice, or without the key that it is bound to.
func TestProcessesShareARefresh(t *testing.T) {
	if os.Getenv("LOGIN_FOLDER") != "" {
		t.Skip("this is one of the processes")
	}
	folder := t.TempDir()
	s, server := authserver.Start(t, authserver.Behaviour{DPoP: es256, DPoPResource: "challenge"}, http.NotFoundHandler())
	store := login.NewFiles(folder, nil)
	c, err := login.New(&login.Options{URL: server, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := loggedIn(t, c, http.DefaultTransport)
	old := *l
	old.Expiry = time.Now().Add(-time.Minute)
	put(t, store, &old)

	var processes sync.WaitGroup
	for range 8 {
		processes.Go(func() {
			cmd := exec.CommandContext(within(t), os.Args[0], "-test.run=^TestProcess$")
			cmd.Env = append(os.Environ(), "LOGIN_FOLDER="+folder, "LOGIN_SERVER="+server)
			out, err := cmd.CombinedOutput()
			_, token, _ := strings.Cut(string(out), "token=")
			token, _, _ = strings.Cut(token, "\n")
			if err != nil || !s.Accepts(token, server) {
				t.Errorf("a process ended with %v: %s", err, out)
			}
		})
	}
	processes.Wait()
	if n := s.Count("/token refresh_token"); n != 1 {
		t.Errorf("the token was refreshed %d times", n)
	}
	if n := s.Count("/authorize"); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
}

// TestProcess is one of the processes of TestProcessesShareARefresh.
func TestProcess(t *testing.T) {
	folder := os.Getenv("LOGIN_FOLDER")
	if folder == "" {
		return
	}
	c, err := login.New(&login.Options{URL: os.Getenv("LOGIN_SERVER"), Store: login.NewFiles(folder, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	token, err := c.Token(within(t))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("token=" + token + "\n")
}
