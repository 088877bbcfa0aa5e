// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// TestACapEndsTheTurn: with its name and the status of limits, also where another
// process has spent what there was.
func TestACapEndsTheTurn(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello."), says("Again.")), historyTable,
		"[budgets]\nanswer_tokens = 16\ncaps = [{scope = \"roster\", tokens = 1000}]\n")
	consort(t, "run", "hi", "--config", path).expect(t, exit.Done)
	var last outcome
	for range 60 {
		if last = consort(t, "run", "--conversation", "new", "hi", "--config", path); last.status != int(exit.Done) {
			break
		}
		consort(t, "history", "delete", "new", "--config", path).expect(t, exit.Done)
	}
	contains(t, "standard error", last.expect(t, exit.Limit).stderr, "cap of [budgets]", "1000 tokens for all together", "with a higher cap")
	lacks(t, "standard output", last.stdout, "Hello.")
}

// TestACapThatLeavesNothing: the model is not asked.
func TestACapThatLeavesNothing(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), "[budgets]\ncaps = [{scope = \"conversation\", tokens = 1}]\n")
	contains(t, "standard error", consort(t, "run", "hi", "--config", path).expect(t, exit.Limit).stderr, "cap of [budgets]", "conversation")
}
