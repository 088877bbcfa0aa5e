// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
)

// full cannot store canisters.
type full struct{ history.Store }

func (full) Append(context.Context, string, int, ...canister.Canister) error {
	return errors.New("the disk is full")
}

// The status says whether the answer is wrong, or cannot be stored.
func TestStatusOfAnswer(t *testing.T) {
	head := func(id string) canister.Head { return canister.Head{ID: id} }
	talk := []canister.Canister{
		canister.User{Head: head("u"), Content: canister.Texts("Pay.")},
		canister.Assistant{Head: head("m")},
		canister.Invocation{Head: head("i"), Message: "m", CallID: "c", Name: "pay", Arguments: "{}"},
		canister.Wait{Head: head("w"), Invocation: "i", For: canister.WaitApproval, Deadline: time.Now().Add(time.Hour)},
	}
	for _, test := range []struct {
		arguments string
		isFull    bool
		want      exit.Status
	}{
		{`[1]`, false, exit.Usage},
		{`[1]`, true, exit.Usage},
		{`{"sum":1}`, true, exit.Failed},
		{`{"sum":1}`, false, exit.Done},
	} {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, talk...); err != nil {
			t.Fatal(err)
		}
		m, _ := managing(t, store)
		if test.isFull {
			m.use(full{store})
		}
		with := &Answer{AnswerFlag{Name: "arguments", Waits: canister.WaitApproval, Verdict: canister.VerdictChange}, test.arguments}
		if err := m.Answer(t.Context(), Answering{ID: "talk", Wait: "w", With: with, By: "dana"}); exit.StatusOf(err) != test.want {
			t.Errorf("--arguments %s, in a full store: %v: %v", test.arguments, test.isFull, err)
		}
	}
}
