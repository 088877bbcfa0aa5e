// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// kept is a stream that records the published deltas.
type kept struct {
	deltas []string
	err    error
}

func (k *kept) Publish(ctx context.Context, conversation string, d engine.Delta) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	what := "grown"
	switch {
	case d.Ended != nil:
		what = "ended " + d.Ended.Turn + d.Ended.Error
	case d.Event != nil:
		what = fmt.Sprintf("%q, number %d, missed %d", d.Text(), d.Index, d.Missed)
	}
	k.deltas = append(k.deltas, fmt.Sprintf("%s/%s/%d at %d: %s", conversation, d.Turn, d.Attempt, d.Position, what))
	return k.err
}

func (k *kept) Subscribe(context.Context, string) (<-chan engine.Delta, error) { return nil, nil }

// What happens is told with its attempt and its place, and the log's growth too;
// the end also when the work was put down.
func TestPublisher(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log, stream := history.NewMemory(), &kept{err: errors.New("away")}
	lost := 0
	told := engine.Publisher{Stream: stream, Log: log, Conversation: "talk", Attempt: 7, Lost: func(error) { lost++ }}
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: "A raincoat."}), nil, &converse.Options{ID: "talk", Log: log})
	defer talk.Close(t.Context())
	if err := talk.Add(ctx, canister.User{Head: canister.Head{ID: "m1"}, Content: canister.Texts("What should I wear?")}); err != nil {
		t.Fatal(err)
	}
	for happened, err := range talk.Continue(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		told.Observe(ctx, talk, happened)
	}
	// What entered the log last, no event has told of.
	if err := talk.Add(ctx, canister.User{Head: canister.Head{ID: "m2"}, Content: canister.Texts("And in Bergen?")}); err != nil {
		t.Fatal(err)
	}
	cancel()
	told.End(ctx, engine.Ended{Reason: converse.ReasonAnswered})
	want := []string{
		"talk/m1/7 at 1: grown", `talk/m1/7 at 1: "A rainco", number 0, missed 0`, `talk/m1/7 at 1: "at.", number 1, missed 1`, "talk/m1/7 at 2: grown", "talk/m2/7 at 3: ended m2",
	}
	if !reflect.DeepEqual(stream.deltas, want) || lost != len(want) {
		t.Errorf("%d were lost of %q, want all of %q", lost, stream.deltas, want)
	}
}

// Of a turn that could not even be begun the log tells which it was.
func TestPublisherOfWhatCouldNotBegin(t *testing.T) {
	log, stream := history.NewMemory(), &kept{}
	message := canister.User{Head: canister.Head{ID: "m1"}, Content: canister.Texts("Hello.")}
	if err := log.Append(t.Context(), "talk", 0, message); err != nil {
		t.Fatal(err)
	}
	told := engine.Publisher{Stream: stream, Log: log, Conversation: "talk", Attempt: 8}
	told.End(t.Context(), engine.Ended{Error: ", no key"})
	if want := []string{"talk/m1/8 at 1: ended m1, no key"}; !reflect.DeepEqual(stream.deltas, want) {
		t.Errorf("it tells %q, want %q", stream.deltas, want)
	}
	nobody := engine.Publisher{}
	nobody.Observe(t.Context(), nil, converse.TurnStarted{})
	nobody.End(t.Context(), engine.Ended{})
}

func TestPermanent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&converse.ModelError{Message: "no", Status: 400}, true},
		{fmt.Errorf("turn: %w", &converse.ModelError{Message: "busy", Retryable: true}), false},
		{&history.CorruptError{Err: errors.New("bit")}, true},
		{fmt.Errorf("%w: 9", canister.ErrNewer), true},
		{errors.New("connection refused"), false},
	} {
		if got := engine.Permanent(tt.err); got != tt.want {
			t.Errorf("%v is permanent: %v", tt.err, got)
		}
	}
}
