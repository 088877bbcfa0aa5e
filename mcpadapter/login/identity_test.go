// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// TestTokensOfOthers: in random interleavings of logins, logouts, expiries, ends and calls
// of three identities, in two processes each, none gets a token of another one.
func TestTokensOfOthers(t *testing.T) {
	const rounds, steps = 200, 50
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			s, network := world(authserver.Behaviour{Device: true})
			store := login.NewMemory()
			random := rand.New(rand.NewPCG(seed, 17))
			owners := map[int]string{} // by login
			var mu sync.Mutex
			clients := map[string][]*login.Client{}
			for _, identity := range []string{"", "ada", "bob"} {
				for range 2 {
					clients[identity] = append(clients[identity], newClient(t, network, login.Options{Store: store, Identity: identity}))
				}
			}
			use := func(identity string, c *login.Client) {
				token, err := c.Token(t.Context())
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil && !errors.Is(err, ensemble.ErrNeedsLogin):
					t.Errorf("seed %d: %v", seed, err)
				case err == nil && owners[s.LoginOf(token)] != identity:
					t.Errorf("seed %d: %q got a token of %q", seed, identity, owners[s.LoginOf(token)])
				}
			}
			for range steps {
				identity := []string{"", "ada", "bob"}[random.IntN(3)]
				c := clients[identity][random.IntN(2)]
				switch random.IntN(8) {
				case 0:
					l, err := c.Login(t.Context(), &login.Prompt{Enter: func(context.Context, login.Code) error { s.Enter(); return nil }})
					if err != nil {
						t.Fatal(err)
					}
					owners[s.LoginOf(string(l.AccessToken))] = identity
				case 1:
					_, _ = c.Logout(t.Context())
				case 2:
					s.RevokeAll()
				case 3:
					time.Sleep(time.Duration(random.IntN(90)) * time.Minute)
				default:
					var calls sync.WaitGroup
					for identity, pair := range clients {
						for _, c := range pair {
							calls.Go(func() { use(identity, c) })
						}
					}
					calls.Wait()
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}
