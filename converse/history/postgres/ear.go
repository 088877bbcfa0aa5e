// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// beat is how often the ear checks that its connection is alive, and whether it has
	// missed that a conversation grew.
	beat = 5 * time.Second
	// hearTime is how long the server may take to answer the ear.
	hearTime = 10 * time.Second
)

// ear owns the single LISTEN connection of a store; the connection is open while there
// are listening loops.
type ear struct {
	store  *Store
	config *pgx.ConnConfig
	beat   time.Duration
	ctx    context.Context // ends with the store
	end    context.CancelFunc
	runs   sync.WaitGroup

	mu        sync.Mutex
	running   bool
	changed   bool                         // hearings has changed since the last tune
	interrupt context.CancelFunc           // interrupts the wait; nil if it is not waiting
	hearings  map[string]map[*hearing]bool // by channel
}

func newEar(s *Store, config *pgx.ConnConfig) *ear {
	ctx, cancel := context.WithCancel(context.Background())
	return &ear{store: s, config: config, beat: beat, ctx: ctx, end: cancel, hearings: map[string]map[*hearing]bool{}}
}

// stop ends the ear, after the store has begun to close.
func (e *ear) stop() {
	e.end()
	e.runs.Wait()
}

// hear subscribes to one channel of a conversation.
func (e *ear) hear(ctx context.Context, kind byte, conversation string) (*hearing, error) {
	if err := history.CheckID(conversation); err != nil {
		return nil, err
	}
	if err := e.store.common.Usable(ctx); err != nil {
		return nil, err
	}
	h := newHearing(e.store, e.store.channel(kind, conversation), conversation, kind == 'g')
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, history.ErrClosed
	}
	if e.hearings[h.channel] == nil {
		e.hearings[h.channel] = map[*hearing]bool{}
	}
	e.hearings[h.channel][h] = true
	e.look()
	if !e.running {
		e.running = true
		e.runs.Go(e.run)
	}
	return h, nil
}

// leave ends a subscription.
func (e *ear) leave(h *hearing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.hearings[h.channel], h)
	if len(e.hearings[h.channel]) == 0 {
		delete(e.hearings, h.channel)
		e.look()
	}
}

// look makes the ear update its channels. The caller holds mu.
func (e *ear) look() {
	e.changed = true
	if e.interrupt != nil {
		e.interrupt()
	}
}

// each calls do for the hearings of a channel, or for all if channel is "".
func (e *ear) each(channel string, do func(*hearing)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, all := range e.hearings {
		if channel != "" && name != channel {
			continue
		}
		for h := range all {
			do(h)
		}
	}
}

// run listens until all hearings have ended, and reconnects when the connection is
// lost.
func (e *ear) run() {
	pause := 50 * time.Millisecond
	for {
		began := time.Now()
		err := e.listen()
		if err == nil || e.ctx.Err() != nil {
			return
		}
		if _, refused := errors.AsType[*pgconn.PgError](err); refused && !lost(err) {
			e.each("", func(h *hearing) { h.fail(err) })
		}
		if time.Since(began) > e.beat {
			pause = 50 * time.Millisecond
		}
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return
		}
		pause = min(2*pause, e.beat)
	}
}

// listen listens on one connection. It returns nil when all hearings have ended.
func (e *ear) listen() error {
	connecting, cancel := context.WithTimeout(e.ctx, hearTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, e.config)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	e.each("", func(h *hearing) { h.hears = false })
	on := map[string]bool{}
	for due := time.Now().Add(e.beat); ; {
		if more, err := e.tune(conn, on); !more || err != nil {
			return err
		}
		note, err := e.wait(conn, due)
		switch {
		case err != nil:
			return err
		case note != nil:
			e.each(note.Channel, func(h *hearing) { h.note(note.Payload) })
		case !time.Now().Before(due):
			if err := e.check(conn); err != nil {
				return err
			}
			due = time.Now().Add(e.beat)
		}
	}
}

// tune makes the connection listen to exactly the channels that have hearings. If no
// channel has any, it returns false, and the ear has stopped running.
func (e *ear) tune(conn *pgx.Conn, on map[string]bool) (more bool, err error) {
	e.mu.Lock()
	if len(e.hearings) == 0 {
		e.running = false
		e.mu.Unlock()
		return false, nil
	}
	var todo strings.Builder
	if e.changed || len(on) == 0 {
		e.changed = false
		for channel := range e.hearings {
			if !on[channel] {
				fmt.Fprintf(&todo, "LISTEN %s;", channel)
				on[channel] = true
			}
		}
		for channel := range on {
			if e.hearings[channel] == nil {
				fmt.Fprintf(&todo, "UNLISTEN %s;", channel)
				delete(on, channel)
			}
		}
	}
	e.mu.Unlock()
	if todo.Len() > 0 {
		ctx, cancel := context.WithTimeout(e.ctx, hearTime)
		defer cancel()
		if _, err := conn.Exec(ctx, todo.String()); err != nil {
			return true, err
		}
	}
	e.each("", func(h *hearing) {
		if on[h.channel] && !h.hears {
			h.hears = true
			h.miss()
		}
	})
	return true, nil
}

// wait returns the next notification, or nil when the check is due or the channels have
// changed.
func (e *ear) wait(conn *pgx.Conn, due time.Time) (*pgconn.Notification, error) {
	ctx, cancel := context.WithDeadline(e.ctx, due)
	defer cancel()
	e.mu.Lock()
	if e.changed {
		e.mu.Unlock()
		return nil, nil
	}
	e.interrupt = cancel
	e.mu.Unlock()
	note, err := conn.WaitForNotification(ctx)
	e.mu.Lock()
	e.interrupt = nil
	e.mu.Unlock()
	if err != nil && ctx.Err() != nil && !conn.IsClosed() {
		return nil, e.ctx.Err()
	}
	return note, err
}

// check asks the server for the lengths of the watched conversations, and notifies the
// hearings that have missed a change. It fails if the connection is dead.
func (e *ear) check(conn *pgx.Conn) error {
	var ids []string
	e.each("", func(h *hearing) {
		if h.watches {
			ids = append(ids, h.conversation)
		}
	})
	ctx, cancel := context.WithTimeout(e.ctx, hearTime)
	defer cancel()
	lengths, err := e.store.lengths(ctx, conn, ids)
	if err != nil {
		return err
	}
	e.each("", func(h *hearing) {
		if h.watches && h.seen.Load() != int64(lengths[h.conversation]) {
			h.miss()
		}
	})
	return nil
}

// lengths returns the lengths of the conversations that exist.
func (s *Store) lengths(ctx context.Context, conn interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, ids []string) (map[string]int, error) {
	found, err := conn.Query(ctx, s.sql("SELECT id, length FROM @.conversations WHERE id = ANY ($1)"), ids)
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	var id string
	var length int
	_, err = pgx.ForEachRow(found, []any{&id, &length}, func() error { all[id] = length; return nil })
	return all, err
}
