// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// unreadSource makes connections whose other end has read nothing for a minute.
type unreadSource struct{ ensemble.Source }

func (s unreadSource) Open(ctx context.Context) (ensemble.Connection, error) {
	opened, err := s.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return unreadConnection{opened, opened.(ensemble.Pinger)}, nil
}

type unreadConnection struct {
	ensemble.Connection
	ensemble.Pinger
}

func (unreadConnection) Unread() time.Duration { return time.Minute }
func (unreadConnection) Late() int             { return 60 }

// What keep-alive and statistics ask of a connection gets through to it.
func TestConnectionPassesAbilities(t *testing.T) {
	for want, inner := range map[time.Duration]ensemble.Source{
		0:           ensembletest.NewSource(),
		time.Minute: unreadSource{ensembletest.NewSource()},
	} {
		opened, err := Source(inner, nil, nil).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if able, ok := opened.(ensemble.Unreader); !ok || able.Unread() != want {
			t.Errorf("%T is not an Unreader that says %s", opened, want)
		}
		if able, ok := opened.(ensemble.LateCounter); !ok || able.Late() != int(want.Seconds()) {
			t.Errorf("%T does not count %d late answers", opened, int(want.Seconds()))
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A connection to a server of MCP can do behind the cleaning what it can do without.
func TestConnectionHidesNothing(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	source := mcpadapter.InMemory(server, nil)
	bare, err := source.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clean, err := Source(source, nil, nil).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for method := range reflect.TypeOf(bare).Methods() {
		if _, ok := reflect.TypeOf(clean).MethodByName(method.Name); !ok {
			t.Errorf("%T has no method %s", clean, method.Name)
		}
	}
	if err := errors.Join(bare.Close(t.Context()), clean.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
