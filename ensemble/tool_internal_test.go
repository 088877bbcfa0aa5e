// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// A call whose end came before its beginning, as when the loss of its connection
// is noticed just then, was not made: it can be made over another connection.
func TestNotBegun(t *testing.T) {
	ran := false
	inv, err := invoker.New("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		ran = true
		return "paid", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := Local("local", inv)
	defer e.Close(context.Background())
	tools, err := e.Tools(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s, target, err := tools[0].target(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	clock := startClock(ctx, &e.options)
	defer clock.stop()
	cancel()
	_, made, err := tools[0].invokeOver(ctx, clock, s, target, &invoker.Call{})
	if failure := invoker.AsFailure(err); made || failure == nil || failure.Code != invoker.Canceled || ran {
		t.Errorf("made: %t, run: %t, %v", made, ran, err)
	}
}
