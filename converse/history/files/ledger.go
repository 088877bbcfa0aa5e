// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
)

// Ledger returns the ledger in the store's folder, which is shared by all processes
// that use the folder. It is closed with the store. The accounts are in the file
// .ledger.jsonl, described in docs/budgets.md.
func (s *Store) Ledger() budget.Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil {
		s.ledger = &ledger{store: s, path: filepath.Join(s.dir, ".ledger.jsonl")}
	}
	return s.ledger
}

// ledger is the ledger of a folder, with the state that this process has read. The gate
// of its path guards that state.
type ledger struct {
	store *Store
	path  string

	book budget.Book
	head []byte // the beginning of the file that was read; nil if none
	base int64  // the length of its first line
	read int64  // how far it was read

	created bool // this process created the file
	settled bool // the name of the file is known to be on the disk, as far as this process can sync it
}

// Reserve implements [budget.Ledger].
func (l *ledger) Reserve(ctx context.Context, r budget.Reservation) (granted []int64, _ error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	err := l.change(ctx, func(file *os.File) (err error) {
		if now := r.Due(l.store.clock()); l.book.Tidy(now) {
			err = l.write(file, true, entry{Tidy: &now})
		}
		if err != nil {
			return err
		}
		replaced := l.replaced(r)
		if granted, err = l.book.Reserve(r); err != nil {
			return err
		}
		lines := make([]reserved, len(r.Lines))
		for i, line := range r.Lines {
			lines[i] = reserved{line.Account, granted[i], line.Ends}
		}
		// A crash between the lines leaves too much reserved rather than too little.
		return l.write(file, true, append([]entry{{Reserve: r.ID, Lines: lines, Expires: r.Expires}}, replaced...)...)
	})
	return granted, err
}

// replaced returns the entries that set the amounts of the other attempts that a
// reservation replaces to 0.
func (l *ledger) replaced(r budget.Reservation) (entries []entry) {
	for id, open := range l.book.Open {
		if id == r.ID || !r.Replaces(id) {
			continue
		}
		e, holds := entry{Reserve: id, Expires: open.Expires}, false
		for account, amount := range open.Amounts {
			holds = holds || amount > 0
			e.Lines = append(e.Lines, reserved{Account: account, Ends: l.book.Accounts[account].Ends})
		}
		if holds {
			entries = append(entries, e)
		}
	}
	return entries
}

// Settle implements [budget.Ledger]. It does not wait for the disk if no account spends
// more than was reserved: if the entry is lost, more counts as spent.
func (l *ledger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if err := budget.CheckSpent(spent); err != nil {
		return err
	}
	return l.change(ctx, func(file *os.File) error {
		open, ok := l.book.Open[id]
		if !ok {
			return nil
		}
		known := map[string]int64{}
		for account := range open.Amounts {
			if amount, ok := spent[account]; ok {
				known[account] = amount
			}
		}
		more := exceeds(open, known)
		l.book.Settle(id, known)
		return l.write(file, more, entry{Settle: id, Spent: known})
	})
}

// exceeds reports whether an account spends more than was reserved.
func exceeds(open budget.Open, spent map[string]int64) bool {
	for account, reserved := range open.Amounts {
		if spent[account] > reserved {
			return true
		}
	}
	return false
}

// Balances implements [budget.Ledger].
func (l *ledger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	balances := make([]budget.Balance, len(accounts))
	err := l.with(ctx, os.O_RDONLY, func(*os.File) error {
		for i, account := range accounts {
			balances[i] = l.book.Balance(account)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return balances, nil
}

// change calls with for an operation that writes. A failed operation may have changed
// the book but not the file, so the file is then read again.
func (l *ledger) change(ctx context.Context, do func(*os.File) error) error {
	return l.with(ctx, os.O_RDWR|os.O_CREATE, func(file *os.File) error {
		err := do(file)
		if denied := new(budget.DeniedError); err != nil && !errors.As(err, &denied) {
			l.head = nil
		}
		if err == nil && l.read > l.base*4+rewriteFrom {
			_ = l.rewrite(ctx, file) // the change is written; the next change tries again, or syncs the name
		}
		return err
	})
}

// with locks the file, reads what other processes have written, and calls do.
func (l *ledger) with(ctx context.Context, flag int, do func(*os.File) error) error {
	if err := l.store.begin(ctx); err != nil {
		return err
	}
	defer l.store.running.Done()
	leave, err := l.store.enter(ctx, l.path)
	if err != nil {
		return err
	}
	defer leave()
	file, err := l.store.renames().Open(ctx, l.path, flag)
	if err != nil {
		return l.failed(err)
	}
	defer file.Close()
	if err := l.catchUp(file); err != nil {
		l.head = nil
		return l.failed(err)
	}
	return l.failed(do(file))
}

// failed adds the source to an error, unless the error is already specific.
func (l *ledger) failed(err error) error {
	var denied *budget.DeniedError
	var corrupt *history.CorruptError
	if err == nil || errors.As(err, &denied) || errors.As(err, &corrupt) || errors.Is(err, canister.ErrNewer) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("files: the ledger: %w", err)
}
