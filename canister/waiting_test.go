// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"testing"

	"github.com/consort-go/consort/canister"
)

func TestVerdicts(t *testing.T) {
	for _, f := range []canister.WaitFor{canister.WaitApproval, canister.WaitElicitation, canister.WaitOutcome, canister.WaitTimer} {
		if len(f.Answers()) == 0 {
			t.Errorf("nothing answers a wait for %s", f)
		}
	}
	if got := canister.WaitFor("weather").Answers(); got != nil {
		t.Errorf("%q answer a wait that there is not", got)
	}
}
