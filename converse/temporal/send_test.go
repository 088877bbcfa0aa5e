// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
)

// A message does not enter a running turn that has had more exchanges than the default limit.
func TestALongTurnIsNotOver(t *testing.T) {
	store := history.NewMemory()
	if err := store.Append(t.Context(), "talk", 0, longTurn(canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")})...); err != nil {
		t.Fatal(err)
	}
	server := &lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, working: []*workflowpb.PendingActivityInfo{{}}}
	e, err := NewEngine(server, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	wait := turnEnd{Engine: e, conversation: "talk"}
	over := func(want bool) {
		t.Helper()
		if got, err := wait.over(t.Context(), canister.Head{ID: "m2"}); got != want || err != nil {
			t.Errorf("the turn is over: %v, %v; want %v", got, err, want)
		}
	}
	over(false)
	server.working, server.status = nil, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	over(true)
}
