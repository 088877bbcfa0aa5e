// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package files

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/consort-go/consort/internal/testing/ledgerrace"
)

// spendTogether is run by the other process.
func spendTogether(args []string) error {
	s, err := Open(args[0], nil)
	if err != nil {
		return err
	}
	return errors.Join(ledgerrace.Spend(s.Ledger(), args[1], os.Stdout), s.Close())
}

// Processes that reserve concurrently are together not granted more than the rest of the
// limit, even if one of them is killed.
func TestLedgerOfProcesses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	ledgerrace.Test(t, s.Ledger(), func(name string) *exec.Cmd {
		cmd, _ := child(t, "spend", dir, name)
		cmd.Stdout, cmd.Stderr = nil, os.Stderr
		return cmd
	})
}

// BenchmarkLedger reserves on three accounts and settles.
func BenchmarkLedger(b *testing.B) {
	s := open(b, b.TempDir())
	defer s.Close()
	ledgerrace.Bench(b, s.Ledger())
}
