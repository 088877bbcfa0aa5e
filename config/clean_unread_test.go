// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
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

// What keep-alive asks of a connection gets through to it.
func TestCleanConnectionPassesUnread(t *testing.T) {
	for want, inner := range map[time.Duration]ensemble.Source{
		0:           ensembletest.NewSource(),
		time.Minute: unreadSource{ensembletest.NewSource()},
	} {
		opened, err := (&cleanSource{Source: inner}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if able, ok := opened.(ensemble.Unreader); !ok || able.Unread() != want {
			t.Errorf("%T is not an Unreader that says %s", opened, want)
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
