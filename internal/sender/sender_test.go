// SPDX-License-Identifier: Apache-2.0

package sender

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
)

// The record of a sender is added to the metadata of a message, and is not in what clients get.
func TestMark(t *testing.T) {
	given := canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: canister.Fields{"app": json.RawMessage(`1`)}}}}
	marked := given
	if err := Mark(With(t.Context(), &Sender{Owner: "ada", Client: "laptop"}), &marked); err != nil {
		t.Fatal(err)
	}
	if s := lastOf([]canister.Canister{marked}, "ada"); s == nil || s.Client != "laptop" || lastOf([]canister.Canister{marked}, "ben") != nil {
		t.Errorf("the sender is %+v", s)
	}
	without := Without(marked).(canister.User)
	if _, has := without.Metadata[Metadata]; has || string(without.Metadata["app"]) != "1" || len(marked.Metadata) != 2 || len(given.Metadata) != 1 {
		t.Errorf("without the record: %v; with it: %v; before: %v", without.Metadata, marked.Metadata, given.Metadata)
	}
	if err := Mark(context.Background(), &without); err != nil || len(without.Metadata) != 1 {
		t.Errorf("without a sender: %v, %v", without.Metadata, err)
	}
	if reply := Without(canister.Assistant{}); reply.Kind() != canister.KindAssistant {
		t.Errorf("another canister: %v", reply)
	}
}
