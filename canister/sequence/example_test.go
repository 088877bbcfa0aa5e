// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

// A history that was put down while a tool was running, and one that has lost
// a canister.
func ExampleCheck() {
	history := []canister.Canister{
		canister.Assistant{Head: canister.Head{ID: "c1"}},
		canister.Invocation{Head: canister.Head{ID: "c2"}, Message: "c1", CallID: "call_1"},
	}
	for _, problem := range sequence.Check(history) {
		fmt.Println(problem)
	}
	history = append(history, canister.User{Head: canister.Head{ID: "c4"}})
	for _, problem := range sequence.Check(history) {
		fmt.Println(problem)
	}
	// Output:
	// canister 1 ("c2"): open: it has no result yet
	// canister 1 ("c2"): unanswered: it has no result, but the conversation continued
}

func ExampleRepair() {
	history := []canister.Canister{
		canister.Assistant{Head: canister.Head{ID: "c1"}},
		canister.Invocation{Head: canister.Head{ID: "c2"}, Message: "c1", CallID: "call_1"},
		canister.User{Head: canister.Head{ID: "c4"}},
		canister.Result{Head: canister.Head{ID: "c5"}, Invocation: "c9"},
	}
	repaired, changes := sequence.Repair(history)
	for _, change := range changes {
		fmt.Println(change)
	}
	for _, c := range repaired {
		fmt.Println(c.Kind(), c.Header().ID)
	}
	// Output:
	// dropped "c5": it answers the invocation "c9", which is not in the history
	// added "c2-result": its invocation had no result
	// assistant c1
	// invocation c2
	// result c2-result
	// user c4
}
