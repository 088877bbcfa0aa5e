// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"io"
	"testing"

	"github.com/consort-go/consort/ensemble"
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
