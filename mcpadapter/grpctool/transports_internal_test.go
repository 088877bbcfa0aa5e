// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"testing"

	"google.golang.org/grpc/stats"
)

// A request has been sent when gRPC has passed it on. gRPC starts another attempt by
// itself only if the previous one was not processed.
func TestWhatHasLeft(t *testing.T) {
	transports := newTransports()
	ctx, r := withRequest(context.Background())
	for i, step := range []struct {
		event stats.RPCStats
		left  bool
	}{
		{&stats.Begin{}, false},
		{&stats.OutHeader{}, false},
		{&stats.OutPayload{}, true},
		{&stats.Begin{IsTransparentRetryAttempt: true}, false},
		{&stats.OutPayload{}, true},
		{&stats.End{}, true},
	} {
		transports.HandleRPC(ctx, step.event)
		if r.left.Load() != step.left {
			t.Errorf("after event %d, %T: left is %t", i, step.event, r.left.Load())
		}
	}
	transports.HandleRPC(context.Background(), &stats.OutPayload{}) // of another call
}

func TestTransportsAreCounted(t *testing.T) {
	transports, ctx := newTransports(), context.Background()
	isGone := func() bool {
		select {
		case <-transports.gone():
			return true
		default:
			return false
		}
	}
	if !isGone() {
		t.Error("there is one before any was made")
	}
	for range 2 {
		transports.HandleConn(ctx, &stats.ConnBegin{})
	}
	transports.HandleConn(ctx, &stats.ConnEnd{})
	if isGone() {
		t.Error("one of two is gone, and none is said to be left")
	}
	transports.HandleConn(ctx, &stats.ConnEnd{})
	if !isGone() {
		t.Error("both are gone, and one is still there")
	}
}
