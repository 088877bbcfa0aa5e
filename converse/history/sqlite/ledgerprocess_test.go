// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/testing/ledgerrace"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// Processes that reserve concurrently are together not granted more than the rest of the
// limit, even if one of them is killed.
func TestLedgerOfProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.db")
	s := openAt(t, path, nil)
	ledgerrace.Test(t, s.Ledger(), func(name string) *exec.Cmd { return storetest.Command(t, path, "spend "+name) })
}

// BenchmarkLedger reserves on three accounts and settles.
func BenchmarkLedger(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "talks.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ledgerrace.Bench(b, s.Ledger())
}
