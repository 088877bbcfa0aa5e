// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
)

// The list describes a server that was connected, and disconnected since because it was unused.
func TestIdleServersAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Returns("a", "answer"))
		source.Peer = ensemble.Peer{Protocol: "2025-11-25", Name: "atlas"}
		e := ensemble.New("e", source, &ensemble.Options{IdleDisconnect: time.Millisecond})
		roster, err := ensemble.NewRoster(e)
		if err != nil {
			t.Fatal(err)
		}
		defer roster.Close(t.Context())
		catalog, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if state := e.Snapshot().State; state != ensemble.Idle {
			t.Fatalf("the server is %s", state)
		}
		list := NewToolList(&config.Assembly{Roster: roster, Options: &converse.Options{}}, catalog)
		if len(list.Servers) != 1 || list.Servers[0].Server != "atlas" || len(list.Tools) != 1 {
			t.Errorf("%+v", list)
		}
	})
}
