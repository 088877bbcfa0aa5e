// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// Tidying leaves a reservation alone that was renewed after it was seen to have expired.
func TestTidyLeavesWhatWasMadeAnew(t *testing.T) {
	store, err := Open(t.Context(), pgtest.DSN(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	ledger := sqlstore.Ledger{Store: &store.common}
	r := budget.Reservation{ID: "r", Now: now, Expires: now.Add(time.Hour), Lines: []budget.Line{{Account: "a", Limit: 100, Most: 10}}}
	if _, err := ledger.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	expire := func(at time.Time, want budget.Balance) {
		t.Helper()
		if err := ledger.SettleExpired(t.Context(), "r", at); err != nil {
			t.Fatal(err)
		}
		if held, err := ledger.Balances(t.Context(), "a"); err != nil || held[0] != want {
			t.Errorf("at %v the account holds %+v, %v, want %+v", at, held, err, want)
		}
	}
	expire(r.Expires.Add(-time.Second), budget.Balance{Reserved: 10})
	expire(r.Expires, budget.Balance{Spent: 10})
}
