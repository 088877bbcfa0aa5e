// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
)

// A result that a log cannot store becomes a failure. The text of each case is built for it, because it is long.
func TestStored(t *testing.T) {
	for name, test := range map[string]struct {
		letter string
		length int
		logged bool
		code   string
	}{
		"long":               {"a", maxStored, true, "RESULT_TOO_LARGE"},
		"long as JSON":       {"\x01", maxStored / maxEscape, true, "RESULT_TOO_LARGE"},
		"not long enough":    {"a", maxStored - 1<<10, true, ""},
		"long without a log": {"a", maxStored, false, ""},
	} {
		result := canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: canister.Texts(strings.Repeat(test.letter, test.length))}
		result.Metadata = canister.Fields{"k": json.RawMessage(`1`)}
		result = Stored(result, test.logged)
		isLost := len(canister.TextOf(result.Content)) < 1000 && result.Metadata == nil
		if result.Code != test.code || isLost != (test.code != "") {
			t.Errorf("%s: the code is %q, and the text has %d bytes", name, result.Code, len(canister.TextOf(result.Content)))
		}
	}
}
