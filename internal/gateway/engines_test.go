// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"iter"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/spill"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/records"
)

// shared is a store like that of package postgres.
type shared struct {
	*history.Memory
	sent string
}

func (s *shared) Notify(_ context.Context, _ string, payload []byte) error {
	s.sent = string(payload)
	return nil
}

func (*shared) Listen(context.Context, string) iter.Seq2[[]byte, error] { return nil }
func (*shared) Ledger() budget.Ledger                                   { return nil }
func (*shared) Records() records.Table                                  { return nil }

// An engine sends deltas through a store that machines share, whether results are spilled or not.
func TestNotifierOfTheStore(t *testing.T) {
	store, folder := &shared{Memory: history.NewMemory()}, spill.NewFolder(t.TempDir())
	for name, try := range map[string]struct {
		store history.Store
		want  bool
	}{
		"shared": {store, true}, "shared, with spilling": {folder.Store(store), true},
		"memory": {store.Memory, false}, "memory, with spilling": {folder.Store(store.Memory), false},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewParts(&config.Assembly{}, histories.ClientsOnly{Store: try.store}).Notifier
			if (n != nil) != try.want {
				t.Fatalf("the notifier is %T", n)
			}
			if n == nil {
				return
			}
			if err := n.Notify(t.Context(), "talk", []byte(name)); err != nil || store.sent != name {
				t.Errorf("sent is %q, %v", store.sent, err)
			}
		})
	}
}
