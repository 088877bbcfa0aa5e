// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"errors"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/elsewhere"
)

// A call may be under way if it has an intent that is young enough, no result, no wait after it, and
// no call of its own that is pending.
func TestCheck(t *testing.T) {
	now := time.Now()
	message := canister.Assistant{Head: canister.Head{ID: "a"}}
	invocation := canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a"}
	young := canister.Intent{Head: canister.Head{ID: "n", Time: now.Add(-time.Minute)}, Invocation: "i"}
	old := canister.Intent{Head: canister.Head{ID: "n", Time: now.Add(-2 * time.Hour)}, Invocation: "i"}
	wait := canister.Wait{Head: canister.Head{ID: "w"}, Invocation: "i"}
	own, inherited := young, young
	own.Key, inherited.Key = calls.Key("talk", "i"), calls.Key("parent", "i")
	again := canister.Intent{Head: canister.Head{ID: "n2", Time: now}, Invocation: "i", Wait: "w"}
	inner := canister.Invocation{Head: canister.Head{ID: "j"}, Message: "a", Parent: "i"}
	innerIntent := canister.Intent{Head: canister.Head{ID: "n3", Time: now}, Invocation: "j"}
	innerWait := canister.Wait{Head: canister.Head{ID: "w2"}, Invocation: "j"}
	innerResult := canister.Result{Head: canister.Head{ID: "r2", Time: now}, Invocation: "j"}
	result := canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i"}
	for name, test := range map[string]struct {
		added []canister.Canister
		until time.Time
	}{
		"not begun":      {[]canister.Canister{message, invocation}, time.Time{}},
		"begun":          {[]canister.Canister{message, invocation, young}, young.Time.Add(time.Hour)},
		"own key":        {[]canister.Canister{message, invocation, own}, young.Time.Add(time.Hour)},
		"of the parent":  {[]canister.Canister{message, invocation, inherited}, time.Time{}},
		"long ago":       {[]canister.Canister{message, invocation, old}, time.Time{}},
		"ended":          {[]canister.Canister{message, invocation, young, result}, time.Time{}},
		"waits":          {[]canister.Canister{message, invocation, young, wait}, time.Time{}},
		"its call waits": {[]canister.Canister{message, invocation, young, inner, innerWait}, time.Time{}},
		"its call began": {[]canister.Canister{message, invocation, young, inner, innerIntent}, now.Add(time.Hour)},
		"its call ended": {[]canister.Canister{message, invocation, young, inner, innerIntent, innerResult}, now.Add(time.Hour)},
		"goes on again":  {[]canister.Canister{message, invocation, young, wait, again}, now.Add(time.Hour)},
	} {
		ctx := elsewhere.With(t.Context(), "talk", time.Hour, new(elsewhere.Begun))
		err := elsewhere.Check(ctx, "talk", test.added, test.added)
		var later *elsewhere.Error
		if errors.As(err, &later) != !test.until.IsZero() || later != nil && !later.Until.Equal(test.until) {
			t.Errorf("%s: %v, want until %v", name, err, test.until)
		}
		begun := new(elsewhere.Begun)
		own := elsewhere.With(t.Context(), "talk", time.Hour, begun)
		for _, id := range []string{"n", "n2", "n3"} {
			elsewhere.Begin(own, "talk", id)
		}
		for what, err := range map[string]error{
			"another conversation": elsewhere.Check(ctx, "inner", test.added, test.added),
			"without a limit":      elsewhere.Check(t.Context(), "talk", test.added, test.added),
			"read before":          elsewhere.Check(ctx, "talk", test.added, nil),
			"its own intents":      elsewhere.Check(own, "talk", test.added, test.added),
		} {
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if begun.Forget("talk"); (elsewhere.Check(own, "talk", test.added, test.added) != nil) != (err != nil) {
			t.Errorf("%s: intents that were forgotten still count as own", name)
		}
	}
}

// A call of another process that this one has taken over is not under way elsewhere.
func TestCheckOfACallThatWasTakenOver(t *testing.T) {
	ctx := elsewhere.With(t.Context(), "talk", time.Hour, new(elsewhere.Begun))
	elsewhere.Begin(ctx, "talk", "n2")
	list := []canister.Canister{
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a"},
		canister.Intent{Head: canister.Head{ID: "n1", Time: time.Now()}, Invocation: "i"},
		canister.Intent{Head: canister.Head{ID: "n2", Time: time.Now()}, Invocation: "i"},
	}
	if err := elsewhere.Check(ctx, "talk", list, list); err != nil {
		t.Error(err)
	}
}
