// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// An append is confirmed only if the synchronous standby has it, also when it is repeated, and
// whoever ends the wait for the standby.
func TestNoStandbyNoConfirmation(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	storetest.Add(t, openAt(t, dsn, nil), "talk", 0, "before")
	harm(t, openAt(t, dsn, nil), "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	server.Restart(t) // a reload could take effect later
	s := openAt(t, dsn, nil)
	patient := openAt(t, dsn, nil)
	s.timeout = 300 * time.Millisecond
	left, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	for range 2 { // the second time it is there
		if err := s.Append(left, "talk", 1, storetest.Says("c1", "left")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that leaves is told %v", err)
		}
		if err := s.Append(t.Context(), "talk", 1, storetest.Says("c1", "left")); err == nil || !strings.Contains(err.Error(), "Options.Timeout") {
			t.Errorf("after Options.Timeout: %v", err)
		}
		told := make(chan error, 1)
		go func() { told <- patient.Append(t.Context(), "talk", 2, storetest.Says("c2", "ended by the server")) }()
		until(t, "it waits for the standby", func() bool {
			return value[int](t, s, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") > 0
		})
		if err := <-told; err == nil || !strings.Contains(err.Error(), "the server warned while it committed") {
			t.Errorf("after an administrator has canceled the commit: %v", err)
		}
	}
	s.timeout = time.Minute
	harm(t, s, "ALTER SYSTEM RESET synchronous_standby_names")
	harm(t, s, "SELECT pg_reload_conf()")
	for length, text := range []string{"before", "left", "ended by the server"} {
		storetest.Add(t, s, "talk", length, text)
	}
	if got := storetest.Texts(t, s, "talk"); len(got) != 3 {
		t.Errorf("there is %q", got)
	}
}
