// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"os/exec"
	"testing"

	"github.com/consort-go/consort/internal/testing/ledgerrace"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// Processes that reserve concurrently are together not granted more than the rest of the
// limit, even if one of them is killed.
func TestLedgerOfProcesses(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, err := Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ledgerrace.Test(t, s.Ledger(), func(name string) *exec.Cmd { return storetest.Command(t, dsn, "spend "+name) })
}

// BenchmarkLedger reserves on three accounts and settles.
func BenchmarkLedger(b *testing.B) {
	s, err := Open(b.Context(), pgtest.DSN(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ledgerrace.Bench(b, s.Ledger())
}
