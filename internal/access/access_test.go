// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
)

func Example() {
	user := invoker.NewTrusted[string]("user_id")
	tokens := access.NewTokens("", []access.Token{{Token: "ada-token", Name: "ada", Trusted: []invoker.Value{user.Value("ada")}}})
	ada, err := tokens.Check([]string{"Bearer ada-token"}, nil)
	fmt.Println(ada.Name, len(ada.Values), err)
	_, err = tokens.Check([]string{"Bearer another"}, nil)
	fmt.Println(err)

	client := access.Client(access.Identity(ada.Key, ada.Values), "192.0.2.1:4711")
	clients := access.New(access.Limits{Parallel: 1})
	end := clients.Begin(client, access.Request)
	fmt.Println(clients.Begin(client, access.Request) == nil)
	end()
	// Output:
	// ada 1 <nil>
	// the bearer token is unknown to this server
	// true
}

func TestCheck(t *testing.T) {
	user := invoker.NewTrusted[string]("user_id")
	hash := sha256.Sum256([]byte("hashed"))
	tokens := access.NewTokens("", []access.Token{
		{}, {Token: "good", Name: "a"}, {Token: "nameless"}, {Token: "old", Name: "late", Expires: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)},
		{Hash: hash, Name: "h"},
		{Token: "young", Expires: time.Now().Add(time.Hour)},
	})
	ask := func(token string) (string, []invoker.Value, error) {
		switch token {
		case "asked":
			return "", []invoker.Value{user.Value("ada")}, nil
		case "named":
			return "ada", nil, nil
		case "bare":
			return "", nil, nil
		case "panics":
			panic("no such key")
		}
		return "", nil, errors.New("unknown")
	}
	for _, c := range []struct {
		headers []string
		name    bool
		values  int
		err     string
	}{
		{[]string{"Bearer good"}, true, 0, ""},
		{[]string{"bearer  good "}, true, 0, ""},
		{[]string{"Bearer nameless"}, true, 0, ""},
		{[]string{"Bearer young"}, true, 0, ""},
		{[]string{"Bearer asked"}, false, 1, ""},
		{[]string{"Bearer bare"}, true, 0, ""},
		{[]string{"Bearer named"}, true, 0, ""},
		{[]string{"Bearer old"}, false, 0, `the bearer token has expired: the client "late" had it until 2026-01-31T00:00:00Z`},
		{[]string{"Bearer hashed"}, true, 0, ""},
		{[]string{"Bearer " + hex.EncodeToString(hash[:])}, false, 0, "unknown"},
		{[]string{"Bearer other"}, false, 0, "unknown"},
		{[]string{"Bearer panics"}, false, 0, "the check of the token panicked: no such key"},
		{[]string{"Bearer"}, false, 0, access.ErrNone.Error()},
		{[]string{"Basic good"}, false, 0, access.ErrNone.Error()},
		{[]string{"Bearer good", "Bearer good"}, false, 0, access.ErrNone.Error()},
		{nil, false, 0, access.ErrNone.Error()},
	} {
		who, err := tokens.Check(c.headers, ask)
		got := ""
		if err != nil {
			got, who = err.Error(), &access.Sender{}
		}
		if got != c.err || len(who.Values) != c.values || (who.Key != "") != c.name {
			t.Errorf("%q: %+v, %v", c.headers, who, err)
		}
	}
	for token, want := range map[string][2]string{"good": {"a", "a"}, "nameless": {}, "named": {"ada", ""}, "asked": {}} {
		who, err := tokens.Check([]string{"Bearer " + token}, ask)
		if err != nil {
			t.Fatal(err)
		}
		ctx := who.WithName(t.Context())
		if got := [2]string{access.NameFrom(ctx), access.MeasuredFrom(ctx)}; got != want {
			t.Errorf("%s: the names are %q, want %q", token, got, want)
		}
	}
}

// An identity does not depend on the secret values of a client, and is unique.
func TestIdentity(t *testing.T) {
	user, token := invoker.NewTrusted[string]("user_id"), invoker.NewTrusted[string]("token").Secret()
	ada := access.Identity("", []invoker.Value{user.Value("ada"), token.Value("1")})
	if again := access.Identity("", []invoker.Value{user.Value("ada"), token.Value("2")}); again != ada {
		t.Error("a new token makes somebody else")
	}
	others := []string{
		ada, access.Identity("", []invoker.Value{user.Value("ben")}), access.Identity("a", []invoker.Value{user.Value("ada")}), access.Identity("a", nil),
		access.Identity("", []invoker.Value{token.Value("1")}), access.Identity("", []invoker.Value{token.Value("2")}), access.Identity("", nil),
	}
	slices.Sort(others)
	if len(slices.Compact(others)) != 7 || others[0] != "" {
		t.Errorf("not all differ: %q", others)
	}
	if access.Client("", "192.0.2.1:80") != "ip 192.0.2.1" || access.Client("x", "192.0.2.1:80") != "id x" {
		t.Error("whose load it is")
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := access.New(access.Limits{Rate: 2, Parallel: 1})
		for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, 500 * time.Millisecond} {
			if wait := clients.Arrive("ada"); wait != want {
				t.Errorf("request %d waits %v, want %v", i, wait, want)
			}
		}
		if wait := clients.Arrive("ben"); wait != 0 {
			t.Errorf("another client waits %v", wait)
		}
		time.Sleep(500 * time.Millisecond)
		if wait := clients.Arrive("ada"); wait != 0 {
			t.Errorf("later, the client waits %v", wait)
		}
	})
}

// Streams, and messages that a call may wait for, leave the places of requests alone.
func TestPlaces(t *testing.T) {
	clients := access.New(access.Limits{Parallel: 1})
	for _, kind := range []access.Kind{access.Request, access.Stream, access.Body} {
		end := clients.Begin("ada", kind)
		if end == nil || clients.Begin("ada", kind) != nil {
			t.Errorf("kind %d has not one place", kind)
			continue
		}
		defer end()
	}
	for range 3 {
		if clients.Begin("ada", access.Message) == nil {
			t.Error("a message finds no place")
		}
	}
	if _, ok := clients.Slot("ada")(); ok {
		t.Error("a slot beside the request")
	}
}
