// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Nothing is left of the subscriptions of a session that has ended, not even in the SDK.
func TestSubscriptionsEndWithTheirSession(t *testing.T) {
	library := local.Library{Templates: []local.Template{{
		Template: ensemble.Template{URI: "test://{id}", Name: "any"},
		Read:     func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) { return nil, nil },
	}}, Updates: new(local.Updates)}.Source()
	roster, err := ensemble.NewRoster(ensemble.New("local", library, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	srv := New(roster, nil)
	for i := range 3 {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(context.Background(), toServer, fromServer) }()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 10 {
			if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("test://%d-%d", i, n)}); err != nil {
				t.Fatal(err)
			}
		}
		_ = session.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := reflect.ValueOf(srv.sdk).Elem().FieldByName("resourceSubscriptions").Len(); left != 0 {
		t.Errorf("the SDK still knows %d URIs", left)
	}
}
