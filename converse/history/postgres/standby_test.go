// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// alone is a store whose server waits for a standby that does not exist.
type alone struct {
	*Store        // for looking
	dsn    string // for stores that write
}

func (a *alone) waiting(t *testing.T) int {
	return value[int](t, a.Store, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

// during runs an operation, and do once it waits for the standby or has ended, until it has ended.
func (a *alone) during(t *testing.T, operation func() error, do func()) error {
	t.Helper()
	told := make(chan error, 1)
	go func() { told <- operation() }()
	until(t, "it waits for the standby", func() bool { return len(told) > 0 || a.waiting(t) > 0 })
	do()
	err := <-told
	until(t, "the server no longer waits", func() bool { return a.waiting(t) == 0 })
	return err
}

// timedOut lets Options.Timeout pass while an operation waits for the standby.
func (a *alone) timedOut(t *testing.T, operation func(context.Context, *Store) error) error {
	t.Helper()
	s := openAt(t, a.dsn, nil)
	for s.timeout = 300 * time.Millisecond; ; s.timeout *= 2 { // a slow machine does not get as far in the first ones
		hasWaited := false
		if err := a.during(t, func() error { return operation(t.Context(), s) }, func() { hasWaited = a.waiting(t) > 0 }); err == nil || hasWaited {
			return err
		}
	}
}

// An operation is confirmed only if the synchronous standby has it, also when it is repeated, and
// whoever ends the wait for the standby.
func TestNoStandbyNoConfirmation(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	before := openAt(t, dsn, nil)
	storetest.Add(t, before, "talk", 0, "before")
	storetest.Add(t, before, "gone", 0, "before")
	if _, err := before.Ledger().Reserve(t.Context(), budget.Reservation{
		ID: "work", Lines: []budget.Line{{Account: "all", Limit: 10, Most: 10}}, Now: time.Now(), Expires: time.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	harm(t, before, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	server.Restart(t) // a reload could take effect later
	a := &alone{openAt(t, dsn, nil), dsn}
	s := openAt(t, dsn, nil)
	operations := map[string]func(context.Context, *Store) error{
		"append": func(ctx context.Context, s *Store) error {
			return s.Append(ctx, "talk", 1, storetest.Says("c1", "new"))
		},
		"delete": func(ctx context.Context, s *Store) error { return s.Delete(ctx, "gone", history.AnyLength) },
		"settle": func(ctx context.Context, s *Store) error {
			return s.Ledger().Settle(ctx, "work", map[string]int64{"all": 3})
		},
	}
	for name, operation := range operations {
		for range 2 { // the second time all is done
			ctx, leave := context.WithCancel(t.Context())
			if err := a.during(t, func() error { return operation(ctx, s) }, leave); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a caller that leaves is told %v", name, err)
			}
			err := a.during(t, func() error { return operation(t.Context(), s) }, func() {
				harm(t, a.Store, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			})
			if err == nil || !strings.Contains(err.Error(), "the server warned while it committed") {
				t.Errorf("%s: after an administrator has canceled the commit: %v", name, err)
			}
			if err := a.timedOut(t, operation); err == nil || !strings.Contains(err.Error(), "Options.Timeout") {
				t.Errorf("%s: after Options.Timeout: %v", name, err)
			}
		}
	}
	harm(t, a.Store, "ALTER SYSTEM RESET synchronous_standby_names")
	harm(t, a.Store, "SELECT pg_reload_conf()")
	for name, operation := range operations {
		if err := operation(t.Context(), s); err != nil {
			t.Errorf("%s, without a standby: %v", name, err)
		}
	}
	balances, err := s.Ledger().Balances(t.Context(), "all")
	if got := storetest.Texts(t, s, "talk"); len(got) != 2 || err != nil || balances[0].Spent != 3 {
		t.Errorf("there is %q, %v, %v", got, balances, err)
	}
	if _, err := s.Info(t.Context(), "gone"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("the deleted conversation: %v", err)
	}
}
