// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/ledgerrace"
	"github.com/consort-go/consort/internal/pgtest"
)

// spendTogether is what the other process does.
func spendTogether(dsn, name string) error {
	s, err := Open(context.Background(), dsn, nil)
	if err != nil {
		return err
	}
	return errors.Join(ledgerrace.Spend(s.Ledger(), strings.TrimPrefix(name, "spend "), os.Stdout), s.Close())
}

// Processes that race for what is left are together not given more than that, also
// where one of them is killed.
func TestLedgerOfProcesses(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, err := Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ledgerrace.Test(t, s.Ledger(), func(name string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CONSORT_TEST_DSN="+dsn, "CONSORT_TEST_WRITER=spend "+name)
		cmd.Stderr = os.Stderr
		return cmd
	})
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
