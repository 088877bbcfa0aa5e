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
	// heartbeat is how often the listener checks that its connection is alive, and whether it has
	// missed that a conversation grew.
	heartbeat = 5 * time.Second
	// answerTimeout is how long the server may take to answer the listener.
	answerTimeout = 10 * time.Second
)

// listener owns the single LISTEN connection of a store; the connection is open while there
// are listening loops.
type listener struct {
	store     *Store
	config    *pgx.ConnConfig
	heartbeat time.Duration
	ctx       context.Context // ends with the store
	cancel    context.CancelFunc
	runs      sync.WaitGroup

	mu            sync.Mutex
	running       bool
	changed       bool                              // subscriptions has changed since the last updateChannels
	interrupt     context.CancelFunc                // interrupts the wait; nil if it is not waiting
	subscriptions map[string]map[*subscription]bool // by channel
}

func newListener(s *Store, config *pgx.ConnConfig) *listener {
	ctx, cancel := context.WithCancel(context.Background())
	return &listener{store: s, config: config, heartbeat: heartbeat, ctx: ctx, cancel: cancel, subscriptions: map[string]map[*subscription]bool{}}
}

// stop ends the listener, after the store has begun to close.
func (l *listener) stop() {
	l.cancel()
	l.runs.Wait()
}

// subscribe subscribes to one channel of a conversation.
func (l *listener) subscribe(ctx context.Context, kind byte, conversation string) (*subscription, error) {
	if err := history.CheckID(conversation); err != nil {
		return nil, err
	}
	if err := l.store.common.Usable(ctx); err != nil {
		return nil, err
	}
	sub := newSubscription(l.store, l.store.channel(kind, conversation), conversation, kind == 'g')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, history.ErrClosed
	}
	if l.subscriptions[sub.channel] == nil {
		l.subscriptions[sub.channel] = map[*subscription]bool{}
	}
	l.subscriptions[sub.channel][sub] = true
	l.refresh()
	if !l.running {
		l.running = true
		l.runs.Go(l.run)
	}
	return sub, nil
}

// unsubscribe ends a subscription.
func (l *listener) unsubscribe(sub *subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscriptions[sub.channel], sub)
	if len(l.subscriptions[sub.channel]) == 0 {
		delete(l.subscriptions, sub.channel)
		l.refresh()
	}
}

// refresh makes the listener update its channels. The caller holds mu.
func (l *listener) refresh() {
	l.changed = true
	if l.interrupt != nil {
		l.interrupt()
	}
}

// each calls do for the subscriptions of a channel, or for all if channel is "".
func (l *listener) each(channel string, do func(*subscription)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, all := range l.subscriptions {
		if channel != "" && name != channel {
			continue
		}
		for sub := range all {
			do(sub)
		}
	}
}

// run listens until all subscriptions have ended, and reconnects when the connection is
// lost.
func (l *listener) run() {
	pause := 50 * time.Millisecond
	for l.isNeeded() {
		began := time.Now()
		err := l.listen()
		if err == nil {
			continue
		}
		if _, refused := errors.AsType[*pgconn.PgError](err); refused && !lost(err) {
			l.each("", func(sub *subscription) { sub.fail(err) })
		}
		if time.Since(began) > l.heartbeat {
			pause = 50 * time.Millisecond
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
		pause = min(2*pause, l.heartbeat)
	}
}

// isNeeded reports whether there are subscriptions and the store is open. If not, the listener
// has stopped running.
func (l *listener) isNeeded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.subscriptions) > 0 && l.ctx.Err() == nil
	return l.running
}

// listen listens on one connection. It returns nil when all subscriptions have ended.
func (l *listener) listen() error {
	connecting, cancel := context.WithTimeout(l.ctx, answerTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, l.config)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	l.each("", func(sub *subscription) { sub.confirmed = false })
	on := map[string]bool{}
	for due := time.Now().Add(l.heartbeat); ; {
		if more, err := l.updateChannels(conn, on); !more || err != nil {
			return err
		}
		note, err := l.wait(conn, due)
		switch {
		case err != nil:
			return err
		case note != nil:
			l.each(note.Channel, func(sub *subscription) { sub.handle(note.Payload) })
		case !time.Now().Before(due):
			if err := l.check(conn); err != nil {
				return err
			}
			due = time.Now().Add(l.heartbeat)
		}
	}
}

// updateChannels makes the connection listen to exactly the channels that have
// subscriptions. If none has, it returns false.
func (l *listener) updateChannels(conn *pgx.Conn, on map[string]bool) (more bool, err error) {
	l.mu.Lock()
	if len(l.subscriptions) == 0 {
		l.mu.Unlock()
		return false, nil
	}
	var todo strings.Builder
	if l.changed || len(on) == 0 {
		l.changed = false
		for channel := range l.subscriptions {
			if !on[channel] {
				fmt.Fprintf(&todo, "LISTEN %s;", channel)
				on[channel] = true
			}
		}
		for channel := range on {
			if l.subscriptions[channel] == nil {
				fmt.Fprintf(&todo, "UNLISTEN %s;", channel)
				delete(on, channel)
			}
		}
	}
	l.mu.Unlock()
	if todo.Len() > 0 {
		ctx, cancel := context.WithTimeout(l.ctx, answerTimeout)
		defer cancel()
		if _, err := conn.Exec(ctx, todo.String()); err != nil {
			return true, err
		}
	}
	l.each("", func(sub *subscription) {
		if on[sub.channel] && !sub.confirmed {
			sub.confirmed = true
			sub.markMissed()
		}
	})
	return true, nil
}

// wait returns the next notification, or nil when the check is due or the channels have
// changed.
func (l *listener) wait(conn *pgx.Conn, due time.Time) (*pgconn.Notification, error) {
	ctx, cancel := context.WithDeadline(l.ctx, due)
	defer cancel()
	l.mu.Lock()
	if l.changed {
		l.mu.Unlock()
		return nil, nil
	}
	l.interrupt = cancel
	l.mu.Unlock()
	note, err := conn.WaitForNotification(ctx)
	l.mu.Lock()
	l.interrupt = nil
	l.mu.Unlock()
	if err != nil && ctx.Err() != nil && !conn.IsClosed() {
		return nil, l.ctx.Err()
	}
	return note, err
}

// check asks the server for the lengths of the watched conversations, and notifies the
// subscriptions that have missed a change. It fails if the connection is dead.
func (l *listener) check(conn *pgx.Conn) error {
	var ids []string
	l.each("", func(sub *subscription) {
		if sub.watchesLength {
			ids = append(ids, sub.conversation)
		}
	})
	ctx, cancel := context.WithTimeout(l.ctx, answerTimeout)
	defer cancel()
	lengths, err := l.store.lengths(ctx, conn, ids)
	if err != nil {
		return err
	}
	l.each("", func(sub *subscription) {
		if sub.watchesLength && sub.seen.Load() != int64(lengths[sub.conversation]) {
			sub.markMissed()
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
