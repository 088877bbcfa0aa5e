// SPDX-License-Identifier: Apache-2.0

package openstreams_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
)

var errWithdrawn = errors.New("withdrawn")

// A stream ends with the reason of its check, or of one that was added later, but not when
// nobody can be asked.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set openstreams.Set
		var err atomic.Pointer[error]
		fails := func(with error) { err.Store(&with) }
		fails(invoker.Failf(invoker.Unavailable, "The issuer is away."))
		of, remove := set.Open(t.Context(), func() error { return *err.Load() })
		defer remove()
		other, removeOther := set.Open(t.Context(), func() error { return nil })
		defer removeOther()
		time.Sleep(time.Minute)
		if of.Err() != nil {
			t.Error("the stream ended although its token could not be checked")
		}
		fails(errWithdrawn)
		set.Recheck()
		synctest.Wait()
		if why, ok := openstreams.Reason(of); !ok || why != "withdrawn" {
			t.Errorf("%q, %t", why, ok)
		}
		if _, ok := openstreams.Reason(other); ok {
			t.Error("the other stream ended too")
		}
		openstreams.Require(other, func() error { return errWithdrawn })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if why, ok := openstreams.Reason(other); !ok || why != "withdrawn" {
			t.Errorf("the right that was required later: %q, %t", why, ok)
		}
	})
}

// A check that hangs holds up neither a reload nor the checks of other streams, and is not
// made twice at once.
func TestHangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set openstreams.Set
		release, running := make(chan struct{}), 0
		slow, removeSlow := set.Open(t.Context(), func() error {
			if running++; running > 1 {
				return errWithdrawn
			}
			<-release
			return nil
		})
		defer removeSlow()
		of, remove := set.Open(t.Context(), func() error { return errWithdrawn })
		defer remove()
		began := time.Now()
		set.Recheck()
		set.Recheck()
		synctest.Wait()
		if of.Err() == nil || slow.Err() != nil || time.Since(began) > 0 || running != 1 {
			t.Errorf("ended %v and %v after %s, %d checks of the one that hangs", of.Err(), slow.Err(), time.Since(began), running)
		}
		close(release) // the second Recheck came while it ran
		synctest.Wait()
		if slow.Err() == nil || running != 2 {
			t.Errorf("after the check: %v, %d checks", slow.Err(), running)
		}
	})
}

// A set without streams has no timer, and one that is used again checks again.
func TestUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := openstreams.Set{Every: time.Second}
		for range 2 {
			checks := 0
			_, remove := set.Open(t.Context(), func() error { checks++; return nil })
			time.Sleep(3500 * time.Millisecond)
			remove()
			time.Sleep(time.Hour)
			synctest.Wait()
			if checks != 3 {
				t.Errorf("%d checks in 3.5 s", checks)
			}
		}
	})
}
