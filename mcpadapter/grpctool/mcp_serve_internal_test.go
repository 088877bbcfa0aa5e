// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
	"google.golang.org/grpc/metadata"
)

// Credentials that were checked before a request arrived are checked again if they may
// have changed meanwhile.
func TestIdentifyAfterSetAccess(t *testing.T) {
	roster, err := ensemble.NewRoster()
	if err != nil {
		t.Fatal(err)
	}
	options := func(token string) *ServerOptions { return &ServerOptions{Tokens: []BearerToken{{Token: token}}} }
	s := NewServer(roster, options("ada-token"))
	defer s.Close(context.Background())
	ctx, err := s.verified(metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer ada-token")))
	if err != nil {
		t.Fatal(err)
	}
	for token, known := range map[string]bool{"ada-token": true, "ben-token": false} {
		s.SetAccess(options(token))
		if _, err := s.identify(ctx); (err == nil) != known {
			t.Errorf("after the access of %s: %v", token, err)
		}
	}
}

// A stream ends when its token has expired, and not while the token cannot be checked.
func TestStreamEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &Server{}
		s.guard.Store(newGuard(&ServerOptions{Authenticate: func(context.Context, string) (string, []invoker.Value, error) {
			switch passed := time.Since(begun); {
			case passed > 3*time.Minute:
				return "", nil, errors.New("the token has expired")
			case passed > time.Minute:
				return "", nil, invoker.Failf(invoker.Unavailable, "The issuer is away.")
			}
			return "ada", nil, nil
		}}))
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer token"))
		from, err := s.identify(ctx)
		if err != nil {
			t.Fatal(err)
		}
		in := &frameReader{frames: make(chan []byte, 1), closed: make(chan struct{})}
		of, remove := s.addStream(ctx, in, from)
		defer remove()
		time.Sleep(3 * time.Minute)
		in.frames <- []byte("{}")
		if n, err := in.Read(make([]byte, 10)); n == 0 || err != nil {
			t.Errorf("before the end of the token: %v", err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		in.frames <- []byte("{}")
		in.line = nil
		why, ended := openstreams.Reason(of)
		if _, err := in.Read(make([]byte, 10)); err != io.EOF || !ended || why != "the credentials are not valid any longer" {
			t.Errorf("after the end of the token: %v, %q", err, why)
		}
	})
}

// A frame that has arrived is not read once its sender has lost access.
func TestClosedFrameReader(t *testing.T) {
	for range 100 { // select chooses at random
		r := &frameReader{frames: make(chan []byte, 1), closed: make(chan struct{})}
		r.frames <- []byte("{}")
		r.Close()
		if n, err := r.Read(make([]byte, 10)); err != io.EOF {
			t.Fatalf("%d bytes are read, %v", n, err)
		}
	}
}
