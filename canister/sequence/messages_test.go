// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

func TestMessages(t *testing.T) {
	for _, test := range []struct{ history, want string }{
		{"", ""},
		{"s1 u1 a1", "s1 u1 a1"},
		{"u1 w1 n1>w1", "u1"},
		{"t1>i1", ""},
		{"a1 i1>a1 i2>a1 r2>i2 t1>i1 i3>a1@i1 t3>i3 r3>i3@i1 r1>i1 a2", "a1 i1>a1 i2>a1 r1>i1 r2>i2 a2"},
		{"a1 i1>a1 i2>a1 i3>a1 r3>i3 r1>i1 r2>i2 u1", "a1 i1>a1 i2>a1 i3>a1 r1>i1 r2>i2 r3>i3 u1"},
		{"a1 i1>a1 i2>a1 t2>i2 w1>i1 r2>i2 n1>w1 t1>i1 r1>i1 a2", "a1 i1>a1 i2>a1 r1>i1 r2>i2 a2"},
		{"a1 i1>a1 i2>a1 r2>i2", "a1 i1>a1 i2>a1 r2>i2"},
		{"a1 i1>a1 i2>a1 r1>i1 r2>i2 a2 i3>a2 i4>a2 r4>i4 r3>i3", "a1 i1>a1 i2>a1 r1>i1 r2>i2 a2 i3>a2 i4>a2 r3>i3 r4>i4"},
	} {
		t.Run(test.history, func(t *testing.T) {
			given := history(test.history)
			before := slices.Clone(given)
			if got := notes(canister.Messages(given)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if !reflect.DeepEqual(given, before) {
				t.Errorf("the history was changed to %q", notes(given))
			}
		})
	}
}

// What a model is told of a good history is one, of messages alone, and of a
// history that is so already it is the history.
func TestMessagesAreAHistory(t *testing.T) {
	for seed := range uint64(500) {
		given := conversation(rand.New(rand.NewPCG(seed, 7)), 12)
		told := canister.Messages(given)
		if problems := sequence.Check(told); problems != nil {
			t.Fatalf("seed %d: %v", seed, problems)
		}
		if i := slices.IndexFunc(told, func(c canister.Canister) bool { return !canister.Message(c) }); i >= 0 {
			t.Fatalf("seed %d: a model is told a %s", seed, told[i].Kind())
		}
		again := canister.Messages(told)
		if len(told) > 0 && &again[0] != &told[0] {
			t.Fatalf("seed %d: messages were copied", seed)
		}
	}
}
