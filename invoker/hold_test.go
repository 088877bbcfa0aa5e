// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"testing"

	"github.com/consort-go/consort/invoker"
)

func TestHold(t *testing.T) {
	var none *invoker.Call
	none.Hold()()
	(&invoker.Call{}).Hold()()

	paused, resumed := 0, 0
	call := &invoker.Call{Pause: func() func() { paused++; return func() { resumed++ } }}
	first, second := call.Hold(), call.Hold()
	first()
	first()
	if paused != 2 || resumed != 1 {
		t.Errorf("paused %d times, resumed %d times, want 2 and 1", paused, resumed)
	}
	second()
	if resumed != 2 {
		t.Errorf("resumed %d times, want 2", resumed)
	}
}
