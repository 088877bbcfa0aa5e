// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Records are small records in the table logins, which several processes change one after the
// other. They belong to no conversation.
type Records struct{ Store *Store }

// Times of a lock. They are variables for tests.
var (
	beatEvery  = 3 * time.Second  // a holder shows that it is alive
	staleAfter = 15 * time.Second // a holder that does not is taken for dead
	lockWait   = time.Minute      // for another process
	pollFirst  = 10 * time.Millisecond
	pollMost   = 500 * time.Millisecond
	// storeTimeout bounds the last write, which the context of the caller does not end.
	storeTimeout = 10 * time.Second
)

// All returns all records by name.
func (r Records) All(ctx context.Context) (map[string][]byte, error) {
	var all map[string][]byte
	err := r.Store.DB.Query(ctx, "", func(ctx context.Context, q Queryer) error {
		all = map[string][]byte{}
		var name string
		var sealed []byte
		return q.Each(ctx, []any{&name, &sealed}, func() error { all[name] = append([]byte(nil), sealed...); return nil },
			"SELECT name, sealed FROM @.logins WHERE length(sealed) > 0")
	})
	return all, err
}

// Get returns one record; nil if it does not exist.
func (r Records) Get(ctx context.Context, name string) ([]byte, error) {
	var found []byte
	err := r.Store.DB.Query(ctx, "", func(ctx context.Context, q Queryer) error {
		var sealed []byte
		found = nil
		return q.Each(ctx, []any{&sealed}, func() error { found = append([]byte(nil), sealed...); return nil },
			"SELECT sealed FROM @.logins WHERE name = $1 AND length(sealed) > 0", name)
	})
	return found, err
}

// Update calls change with a record, nil if there is none, and stores the record that it
// returns; nil removes it. No other Update of the record, in any process, runs at the same
// time, as long as this process lives; one that stands still for 15 seconds is taken for dead.
// Then change is called again if another process has changed the record, so that nothing is
// overwritten unseen. An error of change is returned as it is, and nothing is stored then. The
// result is stored even if ctx has ended in the meantime.
func (r Records) Update(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	for {
		held, err := r.lock(ctx, name)
		if err != nil {
			return err
		}
		if stored, err := held.update(ctx, change); err != nil || stored {
			return err
		}
	}
}

// update calls change and stores its result, and unlocks the record. It returns false if another
// process has changed the record.
func (h *hold) update(ctx context.Context, change func([]byte) ([]byte, error)) (stored bool, err error) {
	stop := h.beat()
	isDone := false
	defer func() { // also if change panics: a holder that beats is never taken for dead
		stop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if !isDone {
			h.release(ctx)
		}
	}()
	after, err := change(h.before)
	if err != nil {
		return false, err
	}
	stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	isDone = true
	return h.store(ctx, after)
}

// hold is a lock on a record.
type hold struct {
	records Records
	name    string
	id      string // differs from that of each other hold
	beats   int
	version int64
	before  []byte // nil without a record
}

// holder is the value of the column holder: the ID and a number, which grows while the holder
// is alive.
func (h *hold) holder() string { return fmt.Sprintf("%s/%d", h.id, h.beats) }

// errHeld says that another process holds a record.
type errHeld struct{ by string }

func (e *errHeld) Error() string { return "held" }

// lock waits until no other process holds a record.
func (r Records) lock(ctx context.Context, name string) (*hold, error) {
	h := &hold{records: r, name: name, id: rand.Text()}
	start, seen, since, wait := time.Now(), "", time.Time{}, pollFirst
	for {
		stale := ""
		if seen != "" && time.Since(since) > staleAfter {
			stale = seen
		}
		err := h.try(ctx, stale)
		held, isHeld := errors.AsType[*errHeld](err)
		switch {
		case !isHeld:
			return h, err
		case held.by != seen: // by this machine's clock, so that clocks may differ
			seen, since = held.by, time.Now()
		}
		if time.Since(start) > lockWait {
			return nil, errors.New("another process has been changing the login for a minute; try again")
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		wait = min(2*wait, pollMost)
	}
}

// try locks a record that nobody holds, or that is held by stale. The error is an errHeld if
// another process holds it.
func (h *hold) try(ctx context.Context, stale string) error {
	type found struct {
		version int64
		sealed  []byte
	}
	got, err := write(ctx, h.records.Store.DB, "", func(ctx context.Context, tx Tx) (f found, verdict, err error) {
		var holder string
		err = tx.Begin(ctx, func(row Scanner) error { return row.Scan(&f.version, &f.sealed, &holder) },
			"SELECT version, sealed, holder FROM @.logins WHERE name = $1 FOR UPDATE", h.name)
		switch {
		case notFound(err):
			n, err := tx.Exec(ctx, "INSERT INTO @.logins (name, version, sealed, holder) VALUES ($1, 0, $2, $3) ON CONFLICT (name) DO NOTHING", h.name, []byte{}, h.holder())
			if err == nil && n == 0 {
				err = ErrRace
			}
			if err != nil {
				return f, nil, err
			}
		case err != nil:
			return f, nil, err
		case holder != "" && holder != stale && holder != h.holder(): // it has our name if the answer to an earlier attempt was lost
			return f, &errHeld{holder}, nil
		default:
			if _, err := tx.Exec(ctx, "UPDATE @.logins SET holder = $2 WHERE name = $1", h.name, h.holder()); err != nil {
				return f, nil, err
			}
		}
		return f, nil, tx.Commit(ctx)
	})
	if h.version = got.version; len(got.sealed) > 0 {
		h.before = append([]byte(nil), got.sealed...)
	}
	return err
}

// beat shows that the holder is alive until stop is called.
func (h *hold) beat() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(beatEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			h.beats++
			_, _ = h.exec(ctx, "UPDATE @.logins SET holder = $3 WHERE name = $1 AND holder LIKE $2", h.name, h.id+"/%", h.holder()) // the next one tries again, and store notices what has changed
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// store stores the record, or removes it, and unlocks it. It returns false if another process
// has changed the record.
func (h *hold) store(ctx context.Context, after []byte) (bool, error) {
	if after == nil {
		after = []byte{} // the row stays, so that its version never returns
	}
	n, err := h.exec(ctx, "UPDATE @.logins SET sealed = $3, version = version + 1, holder = '' WHERE name = $1 AND version = $2", h.name, h.version, after)
	return n == 1, err
}

// release unlocks the record without a change. If it fails, others wait until the lock is
// stale.
func (h *hold) release(ctx context.Context) {
	_, _ = h.exec(ctx, "UPDATE @.logins SET holder = '' WHERE name = $1 AND holder LIKE $2", h.name, h.id+"/%") // a beat may have been stored whose answer was lost
}

// exec runs a statement in a transaction of its own, and returns the number of rows that it
// changed.
func (h *hold) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return write(ctx, h.records.Store.DB, "", func(ctx context.Context, tx Tx) (n int64, verdict, err error) {
		var version int64
		err = tx.Begin(ctx, func(row Scanner) error { return row.Scan(&version) }, "SELECT version FROM @.logins WHERE name = $1 FOR UPDATE", h.name)
		if err != nil && !notFound(err) {
			return 0, nil, err
		}
		if n, err = tx.Exec(ctx, statement, args...); err != nil {
			return 0, nil, err
		}
		return n, nil, tx.Commit(ctx)
	})
}
