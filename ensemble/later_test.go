// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// failing is a source that can be made to fail.
type failing struct {
	ensemble.Source
	down bool
}

func (s *failing) Open(ctx context.Context) (ensemble.Connection, error) {
	if s.down {
		return nil, errors.New("nobody is there")
	}
	return s.Source.Open(ctx)
}

// A call that finds no connection says when the next attempt can be made; the error
// of the ensemble stays the same meanwhile.
func TestWhenToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool, err := invoker.New("do", "", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		source := &failing{Source: ensemble.LocalSource(tool)}
		e := ensemble.New("e", source, nil)
		defer e.Close(context.Background())
		tools, err := e.Tools(t.Context())
		if err != nil || e.Disconnect(t.Context()) != nil {
			t.Fatal(err)
		}
		source.down = true
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			for _, left := range []time.Duration{want * time.Second, (want + 1) / 2 * time.Second} { // the attempt, and halfway to the next
				_, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: []byte("{}")})
				failure := invoker.AsFailure(err)
				if failure.Code != invoker.Unavailable || failure.RetryAfter != left || !strings.Contains(failure.Message, "Try again in "+left.String()) {
					t.Errorf("%v (retry after %s), want %s", failure, failure.RetryAfter, left)
				}
				time.Sleep(want * time.Second / 2)
			}
		}
		source.down = false
		time.Sleep(time.Minute)
		if _, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: []byte("{}")}); err != nil {
			t.Error(err)
		}
	})
}
