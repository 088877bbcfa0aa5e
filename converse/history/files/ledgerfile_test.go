// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
)

// spends reserves on an account, and settles with less.
func spends(t *testing.T, s *Store, id string) error {
	t.Helper()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	r := budget.Reservation{ID: id, Now: now, Expires: now.Add(time.Hour), Lines: []budget.Line{{Account: "a", Limit: budget.MaxAmount, Most: 10}}}
	if _, err := s.Ledger().Reserve(t.Context(), r); err != nil {
		return err
	}
	return s.Ledger().Settle(t.Context(), id, map[string]int64{"a": 3})
}

// account checks the spent amount of the account.
func account(t *testing.T, s *Store, spent int64) {
	t.Helper()
	balances, err := s.Ledger().Balances(t.Context(), "a")
	if err != nil || balances[0] != (budget.Balance{Spent: spent}) {
		t.Errorf("the account has %+v, %v; want %d", balances, err, spent)
	}
}

// Half a line at the end is left by a crash: it is ignored, whatever its length, and
// removed by the next change.
func TestLedgerTorn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	if err := errors.Join(spends(t, s, "r1"), spends(t, s, "r2")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".ledger.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
	for n := range last {
		text := append(bytes.Clone(whole), last[:n]...)
		if n%10 == 9 {
			text = append(bytes.Clone(whole), make([]byte, n)...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		fresh := open(t, dir)
		account(t, fresh, 6)
		account(t, s, 6)
		if err := spends(t, fresh, "r3"); err != nil {
			t.Fatalf("behind %d bytes: %v", n, err)
		}
		account(t, s, 9)
		if err := fresh.Close(); err != nil {
			t.Error(err)
		}
		s.Ledger().(*ledger).head = nil // the test has put the file back
	}
}

// A crash leaves zeros up to the end of a page in lines that were not confirmed: settlements,
// and the reservation after them. They count for nothing, unless something follows that a
// sync has confirmed: then it is damage.
func TestLedgerTornWithin(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	reserve := func(s *Store, id string) error {
		_, err := s.Ledger().Reserve(t.Context(), budget.Reservation{ID: "w#" + id, Work: "w", Now: now, Expires: now.Add(time.Hour),
			Lines: []budget.Line{{Account: "a", Limit: budget.MaxAmount, Most: 10}}})
		return err
	}
	// The second attempt replaces the first: they are three lines of two writes.
	if err := errors.Join(spends(t, s, "r1"), reserve(s, "r2"), reserve(s, "r3"), s.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".ledger.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n")) // the first, r1, its settlement, r2, r3, r2 with 0
	part := func(from, to int) []byte { return bytes.Join(lines[from:to], nil) }
	// put writes a file in which the rest, whose beginning is not on the disk, begins before the
	// end of a page.
	put := func(t *testing.T, before, rest []byte, zeros int) []byte {
		t.Helper()
		first, err := entry{Version: ledgerVersion, Name: "x", Book: &budget.Book{}}.line()
		if err == nil {
			name := strings.Repeat("x", 1+pageSize-zeros-len(first)-len(before))
			first, err = entry{Version: ledgerVersion, Name: name, Book: &budget.Book{}}.line()
		}
		torn := bytes.Clone(rest)
		clear(torn[:zeros])
		text := slices.Concat(first, before, torn)
		if err = errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return text
	}
	for zeros := 3; zeros < len(part(2, 4))-3; zeros++ {
		put(t, part(1, 2), part(2, 4), zeros)
		s := open(t, dir)
		if balances, err := s.Ledger().Balances(t.Context(), "a"); err != nil || balances[0] != (budget.Balance{Reserved: 10}) {
			t.Fatalf("with %d zeros the account has %+v, %v", zeros, balances, err)
		}
		if err := errors.Join(spends(t, s, "r1"), spends(t, s, "r4"), s.Close()); err != nil {
			t.Fatalf("with %d zeros: %v", zeros, err)
		}
		s = open(t, dir)
		account(t, s, 6)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		text := put(t, part(1, 2), part(2, 6), zeros)
		if !bytes.Contains(text[pageSize:], part(3, 4)[bytes.Index(part(3, 4), []byte(`"expires":`)):]) {
			continue // it is lost that a write that syncs was there
		}
		s = open(t, dir)
		if balances, err := s.Ledger().Balances(t.Context(), "a"); !isCorrupt(err) {
			t.Fatalf("with %d zeros before another write the account has %+v, %v", zeros, balances, err)
		}
		if err := spends(t, s, "r4"); !isCorrupt(err) {
			t.Fatalf("with %d zeros before another write: %v", zeros, err)
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, text) || s.Close() != nil {
			t.Fatalf("with %d zeros before another write the file was changed: %v", zeros, err)
		}
	}
	for zeros := 3; zeros < len(part(4, 6))-3; zeros++ {
		put(t, part(1, 4), part(4, 6), zeros)
		s := open(t, dir)
		if balances, err := s.Ledger().Balances(t.Context(), "a"); err != nil || balances[0] != (budget.Balance{Spent: 3, Reserved: 10}) || s.Close() != nil {
			t.Fatalf("with %d zeros the account has %+v, %v", zeros, balances, err)
		}
	}
}

// A bit that has changed is noticed, wherever it is, and so is a file of a newer
// program; neither is written to.
func TestLedgerDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := errors.Join(spends(t, s, "r1"), spends(t, s, "r2"), s.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".ledger.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text []byte, good func(error) bool) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		defer s.Close()
		err := spends(t, s, "r3")
		if is, _ := os.ReadFile(path); !good(err) || !bytes.Equal(is, text) {
			t.Errorf("%v; the file was changed: %v", err, !bytes.Equal(is, text))
		}
		if _, err := s.Ledger().Balances(t.Context(), "a"); !good(err) {
			t.Error(err)
		}
	}
	for at := range whole {
		if whole[at] == '\n' || whole[at]^1 == '\n' {
			continue // a line that is longer, or two
		}
		text := bytes.Clone(whole)
		text[at] ^= 1
		check(text, func(err error) bool {
			corrupt := new(history.CorruptError)
			return errors.As(err, &corrupt) && strings.HasPrefix(corrupt.Location, path)
		})
	}
	newer := appendLine(nil, []byte(`{"v":2,"name":"x","book":{}}`), 0)
	check(newer, func(err error) bool { return errors.Is(err, canister.ErrNewer) })
}

// The file does not grow with settled reservations, and processes that had it open
// continue. A link to it stays.
func TestLedgerIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, ".ledger.jsonl")
	if err := os.Symlink(filepath.Join(t.TempDir(), "ledger"), link); err != nil {
		t.Log("without a link: ", err)
	}
	s, other := open(t, dir), open(t, dir)
	defer s.Close()
	defer other.Close()
	s.sync = func(*os.File) error { return nil } // it takes long
	rewritten := 0
	var size int64
	for n := range 3000 {
		if err := spends(t, s, fmt.Sprint("r", n)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, ".ledger.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < size {
			rewritten++
			account(t, other, int64(3*(n+1)))
		}
		if size = info.Size(); size > rewriteFrom+4096 {
			t.Fatalf("after %d reservations the file has %d bytes", n, size)
		}
	}
	account(t, s, 9000)
	account(t, other, 9000)
	if rewritten == 0 {
		t.Error("the file was never written anew")
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info, err)
	}
}

// A reservation waits until the name of the file is on the disk, also if another process created the file and has
// crashed before it synced the folder, or if the sync failed when the file was replaced. It does so once, and
// the file may be behind a link.
func TestLedgerNameIsSynced(t *testing.T) {
	dir := t.TempDir()
	behind, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(behind, "ledger"), filepath.Join(dir, ".ledger.jsonl")); err != nil {
		t.Skip("without a link: ", err)
	}
	s, broken := open(t, dir), errors.New("the disk is broken")
	var fail error
	syncs := 0
	s.sync = func(file *os.File) error {
		if file.Name() != behind {
			return nil
		}
		syncs++
		return fail
	}
	wants := func(what string, err, want error, least, most int) {
		t.Helper()
		if !errors.Is(err, want) || syncs < least || syncs > most {
			t.Errorf("%s: %v, with %d syncs of the folder", what, err, syncs)
		}
		syncs = 0
	}
	wants("the first", spends(t, s, "r1"), nil, 1, 1)
	wants("the second", spends(t, s, "r2"), nil, 0, 0)
	s.ledger = nil // as another process
	fail = broken
	wants("another process that cannot sync", spends(t, s, "r3"), broken, 1, 1)
	fail = nil
	wants("another process", spends(t, s, "r3"), nil, 1, 1)
	l := s.Ledger().(*ledger)
	fail = broken
	grow := func(*os.File) error { l.read += l.base*4 + rewriteFrom; return nil } // so much that the file is replaced
	if err := l.change(t.Context(), grow); err != nil {
		t.Fatal(err)
	}
	fail, syncs = nil, 0
	wants("after a sync that failed", spends(t, s, "r4"), nil, 1, 1)
	account(t, s, 12)
	// The folder may be another user's, whose process synced it. The process that creates the file must sync it.
	s.ledger = nil
	fail, syncs = fs.ErrPermission, 0
	wants("another user", spends(t, s, "r5"), nil, 1, 1)
	wants("another user again", spends(t, s, "r6"), nil, 0, 0)
	if err := os.Remove(filepath.Join(behind, "ledger")); err != nil {
		t.Fatal(err)
	}
	wants("the first of another user", spends(t, s, "r7"), fs.ErrPermission, 1, 1)
	wants("its second", spends(t, s, "r7"), fs.ErrPermission, 1, 1)
}

// What cannot be written is an error, and counts for nothing then.
func TestLedgerDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	if err := spends(t, s, "r1"); err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	write := s.write
	s.write = func(file *os.File, text []byte, at int64) (int, error) {
		n, _ := write(file, text[:len(text)/2], at)
		return n, full
	}
	if err := spends(t, s, "r2"); !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "files: the ledger: ") {
		t.Error(err)
	}
	s.write = write
	account(t, s, 3)
	if err := spends(t, s, "r2"); err != nil {
		t.Error(err)
	}
	account(t, s, 6)
}

// A file that has become shorter is read again from the beginning: an older one was
// restored.
func TestLedgerPutBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	if err := spends(t, s, "r1"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".ledger.jsonl")
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := spends(t, s, "r2"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	account(t, s, 3)
	if err := spends(t, s, "r3"); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, dir)
	defer fresh.Close()
	account(t, fresh, 6)
}
