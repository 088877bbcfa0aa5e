// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
)

// lockedSource needs a login until open is set.
type lockedSource struct {
	ensemble.Source
	open  atomic.Bool
	tries atomic.Int64
	err   error // of Open without a login
}

// moreRights says that the login must have more rights, which ends no connection.
type moreRights struct{}

func (moreRights) Error() string    { return "the server wants more rights" }
func (moreRights) NeedsLogin() bool { return true }

func (s *lockedSource) Open(ctx context.Context) (ensemble.Connection, error) {
	s.tries.Add(1)
	if !s.open.Load() {
		return nil, fmt.Errorf("no tokens: %w", s.err)
	}
	return s.Source.Open(ctx)
}

// TestNeedsLogin: an ensemble that needs a login says so, is tried again at the next use
// without a wait, and is never parked for it.
func TestNeedsLogin(t *testing.T) {
	for _, policy := range []ensemble.RestartPolicy{ensemble.RestartOnUse, ensemble.RestartAlways, ensemble.RestartNever} {
		for _, failure := range []error{ensemble.ErrNeedsLogin, moreRights{}} {
			t.Run(fmt.Sprint(policy, ": ", failure), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testNeedsLogin(t, policy, failure) }) })
		}
	}
}

func testNeedsLogin(t *testing.T, policy ensemble.RestartPolicy, failure error) {
	source := &lockedSource{Source: ensemble.LocalSource(), err: failure}
	e := ensemble.New("files", source, &ensemble.Options{Restart: ensemble.Restart{Policy: policy, Tries: 2}})
	defer func() { _ = e.Close(context.Background()) }()
	for i := range 10 {
		if _, err := e.Tools(t.Context()); !errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Fatalf("attempt %d: %v", i, err)
		}
		if state := e.Snapshot().State; state != ensemble.NeedsLogin {
			t.Fatalf("the state is %q", state)
		}
	}
	if n := source.tries.Load(); n != 10 {
		t.Errorf("10 uses made %d attempts", n)
	}
	source.open.Store(true)
	if policy == ensemble.RestartAlways { // by itself
		time.Sleep(time.Minute)
		synctest.Wait()
	} else if _, err := e.Tools(t.Context()); err != nil {
		t.Error(err)
	}
	if state := e.Snapshot().State; state != ensemble.Ready {
		t.Errorf("after the login the state is %q", state)
	}
}
