// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// A stream that waits ends soon after its token has expired, and not while the token cannot be
// checked.
func TestStreamEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &Server{}
		auth := newAuthentication(&Options{Authenticate: func(context.Context, string, *http.Request) (string, []invoker.Value, error) {
			switch passed := time.Since(begun); {
			case passed > 3*time.Minute:
				return "", nil, errors.New("the token has expired")
			case passed > time.Minute:
				return "", nil, invoker.Failf(invoker.Unavailable, "The issuer is away.")
			}
			return "ada", nil, nil
		}}, zap.NewNop())
		s.auth.Store(auth)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer token")
		_, _, identity, err := auth.check(request)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		remove := (&handler{Server: s}).wait(&waitingStream{request, &caller{by: auth, identity: identity}, cancel})
		time.Sleep(3*time.Minute - time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it ended before its token")
		}
		time.Sleep(recheckEvery + 2*time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("it goes on after the end of its token")
		}
		remove()
	})
}
