// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/ledgerrace"
)

// spendTogether is what the other process does.
func spendTogether(path, name string) error {
	s, err := Open(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(ledgerrace.Spend(s.Ledger(), strings.TrimPrefix(name, "spend "), os.Stdout), s.Close())
}

// Processes that race for what is left are together not given more than that, also
// where one of them is killed.
func TestLedgerOfProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.db")
	s := openAt(t, path, nil)
	ledgerrace.Test(t, s.Ledger(), func(name string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CONSORT_SQLITE_FILE="+path, "CONSORT_SQLITE_WRITER=spend "+name)
		cmd.Stderr = os.Stderr
		return cmd
	})
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
