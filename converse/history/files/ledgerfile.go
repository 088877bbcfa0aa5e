// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/writefile"
)

// The file of a ledger begins with a line that holds the state at the last rewrite;
// each further line is a change. Lines have a sum, as in history.jsonl. An incomplete
// line at the end, or zeros in lines that no sync had confirmed, were left by a crash, and
// are ignored.

// ledgerVersion is the version of the file.
const ledgerVersion = 1

// rewriteFrom is the number of bytes of changes that triggers a rewrite of the file.
const rewriteFrom = 256 << 10

// maxLedgerHead is how many bytes at the beginning identify the file.
const maxLedgerHead = 64

// entry is a line of the file.
type entry struct {
	// Set in the first line.
	Version int          `json:"v,omitzero"`
	Name    string       `json:"name,omitzero"` // random, new at each rewrite
	Book    *budget.Book `json:"book,omitempty"`
	// Set in a reservation.
	Reserve string     `json:"reserve,omitzero"` // its ID
	Lines   []reserved `json:"lines,omitempty"`
	Expires time.Time  `json:"expires,omitzero"`
	// Set in a settlement.
	Settle string           `json:"settle,omitzero"` // its ID
	Spent  map[string]int64 `json:"spent,omitempty"`
	// When set, reservations that had expired and accounts that had ended by then were
	// removed.
	Tidy *time.Time `json:"tidy,omitempty"`
}

// reserved is the amount reserved on an account.
type reserved struct {
	Account string    `json:"account"`
	Amount  int64     `json:"amount"`
	Ends    time.Time `json:"ends,omitzero"`
}

// line returns the encoded line of an entry.
func (e entry) line() ([]byte, error) {
	form, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return appendLine(nil, form, 0), nil
}

// catchUp reads the lines that other processes have written since the last read, or the
// whole file if it was replaced.
func (l *ledger) catchUp(file *os.File) error {
	head := make([]byte, maxLedgerHead)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if l.head == nil || size < l.read || !bytes.Equal(l.head, head[:min(n, len(l.head))]) {
		l.book, l.head, l.base, l.read, l.created, l.settled = budget.Book{}, nil, 0, 0, false, false
	}
	if size == l.read {
		return nil
	}
	lines := bufio.NewReader(io.NewSectionReader(file, l.read, size-l.read))
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // the rest is an incomplete line
			return nil
		case err != nil:
			return err
		}
		if err := l.take(line); err != nil {
			if l.isUnconfirmed(line, lines) {
				return nil // the next change cuts it off
			}
			return err
		}
		if l.head == nil {
			l.head, l.base = bytes.Clone(line[:min(len(line), maxLedgerHead)]), int64(len(line))
		}
		l.read += int64(len(line))
	}
}

// isUnconfirmed reports whether a crash can have left a line that cannot be read, and the rest of
// the file, before a sync confirmed them: zeros where a disk had not written a page, and after
// them at most the lines of one write that syncs.
func (l *ledger) isUnconfirmed(line []byte, rest *bufio.Reader) bool {
	if _, err := rest.Peek(1); err != nil {
		return bytes.IndexByte(line, 0) >= 0
	}
	if !isTorn(line, l.read) {
		return false
	}
	synced := tornReservation(line) // the last line of the write that syncs, once it has begun
	for offset := l.read + int64(len(line)); ; offset += int64(len(line)) {
		var err error
		if line, err = rest.ReadBytes('\n'); err != nil {
			return errors.Is(err, io.EOF)
		}
		e, err := entryOf(line)
		switch {
		case err != nil && isTorn(line, offset):
			synced = cmp.Or(synced, tornReservation(line))
		case err != nil, synced != nil && !e.completes(synced):
			return false
		case synced != nil || e.Settle == "" || exceeds(l.book.Open[e.Settle], e.Spent):
			synced = &e
		}
	}
}

// tornReservation returns the reservation at the end of a torn line, without its ID if that is
// lost. It returns nil if the line ends with something else, or too much is lost.
func tornReservation(line []byte) *entry {
	left := line[bytes.LastIndexByte(line, 0)+1:]
	if !bytes.Contains(left, []byte(`"expires":`)) {
		return nil
	}
	e, _ := entryOf(left)
	return &e
}

// completes reports whether an entry can be of the same write as the one before it: it sets
// the amounts of another attempt to 0.
func (e *entry) completes(before *entry) bool {
	isSame := budget.WorkOf(e.Reserve) == budget.WorkOf(before.Reserve) ||
		before.Reserve == "" && before.Settle == "" && before.Tidy == nil // the ID is lost
	return e.Reserve != "" && isSame && !slices.ContainsFunc(e.Lines, func(r reserved) bool { return r.Amount > 0 })
}

// entryOf returns the entry in a line.
func entryOf(line []byte) (e entry, err error) {
	form, more, err := splitLine(line)
	if err == nil && more == 0 {
		err = json.Unmarshal(form, &e)
	}
	return e, err
}

// take applies a line to the book.
func (l *ledger) take(line []byte) error {
	e, err := entryOf(line)
	switch {
	case err != nil:
	case e.Version > ledgerVersion:
		return fmt.Errorf("%w: %s has version %d", canister.ErrNewer, l.path, e.Version)
	case (l.head == nil) != (e.Book != nil):
		err = errors.New("the accounts are not in the first line")
	case e.Book != nil:
		l.book = *e.Book
	case e.Reserve != "":
		r := budget.Reservation{ID: e.Reserve, Expires: e.Expires}
		granted := make([]int64, len(e.Lines))
		for i, line := range e.Lines {
			r.Lines = append(r.Lines, budget.Line{Account: line.Account, Ends: line.Ends})
			granted[i] = line.Amount
		}
		l.book.Put(r, granted)
	case e.Settle != "":
		l.book.Settle(e.Settle, e.Spent)
	case e.Tidy != nil:
		l.book.Tidy(*e.Tidy)
	default:
		err = errors.New("the line has no known member")
	}
	if err != nil {
		return &history.CorruptError{Conversation: "", Location: fmt.Sprintf("%s: byte %d", l.path, l.read), Err: err}
	}
	return nil
}

// write appends entries after the part of the file that was read; anything after that
// is an incomplete line. With sync set, write returns when the entries and the name of the file are
// on the disk: the process that created the file may have crashed before it synced the name.
func (l *ledger) write(file *os.File, sync bool, entries ...entry) error {
	var text []byte
	if l.head == nil {
		first, err := entry{Version: ledgerVersion, Name: rand.Text(), Book: &budget.Book{}}.line()
		if err != nil {
			return err
		}
		text, l.base, l.created = first, int64(len(first)), true
		l.head = bytes.Clone(first[:min(len(first), maxLedgerHead)])
	}
	for _, e := range entries {
		line, err := e.line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	err := file.Truncate(l.read)
	if err == nil {
		_, err = l.store.write(file, text, l.read)
	}
	if err == nil && sync {
		err = l.store.sync(file)
	}
	if err == nil && sync && !l.settled {
		err = l.settle()
	}
	if err != nil {
		return errors.Join(err, file.Truncate(l.read))
	}
	l.read += int64(len(text))
	return nil
}

// settle returns when the name of the file is on the disk. The folder of a file that another process
// created may be another user's, and not readable: only that process syncs the name then.
func (l *ledger) settle() error {
	target, err := writefile.Target(l.path)
	if err == nil {
		err = l.store.syncFolder(filepath.Dir(target))
	}
	if !l.created && errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	l.settled = err == nil
	return err
}

// rewrite replaces the file, which is locked, by one that holds only the current state of the
// accounts. It may close the file.
func (l *ledger) rewrite(ctx context.Context, old *os.File) error {
	line, err := entry{Version: ledgerVersion, Name: rand.Text(), Book: &l.book}.line()
	if err != nil {
		return err
	}
	target, err := writefile.Target(l.path)
	if err != nil {
		return err
	}
	done := func() {}
	// On Windows, processes that wait for the lock close the file within milliseconds. All of them wait
	// for the rewrite, so it does not wait long for other programs: a later change tries again.
	_, err = writefile.Replace(target, &writefile.Options{Temporary: ".ledger.new", Wait: 100 * time.Millisecond}, func(file *os.File) error {
		_, err := l.store.write(file, line, 0)
		if err == nil {
			err = l.store.sync(file)
		}
		if err != nil {
			return err
		}
		release, err := l.store.renames().Release(ctx, old)
		if err == nil {
			done = release
			l.store.step("released")
		}
		return err
	})
	done()
	if err != nil {
		return err
	}
	l.head, l.base, l.read = bytes.Clone(line[:min(len(line), maxLedgerHead)]), int64(len(line)), int64(len(line))
	return l.settle()
}
