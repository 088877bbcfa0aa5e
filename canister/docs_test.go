// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

// Every line of JSON in the documentation is one that Marshal writes, and the
// page names every rule, kind and member.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/canisters.md")
	if err != nil {
		t.Fatal(err)
	}
	var histories [][]canister.Canister
	fenced := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```json":
			fenced = true
			histories = append(histories, nil)
		case line == "```":
			fenced = false
		case fenced:
			c, err := canister.Unmarshal([]byte(line))
			if err != nil {
				t.Errorf("%v: %s", err, line)
				continue
			}
			if again, err := canister.Marshal(c); err != nil || string(again) != line {
				t.Errorf("comes back as %s (%v): %s", again, err, line)
			}
			last := len(histories) - 1
			histories[last] = append(histories[last], c)
		}
	}
	if len(histories) < 8 || len(histories[0]) != 6 {
		t.Fatalf("%d blocks of JSON found", len(histories))
	}
	if problems := sequence.Check(histories[0]); problems != nil {
		t.Errorf("the first example: %v", problems)
	}
	repaired, _ := sequence.Repair(histories[0][2:4])
	if shown := histories[len(histories)-1][0]; !reflect.DeepEqual(repaired[2], shown) {
		t.Errorf("Repair adds %#v, the page shows %#v", repaired[2], shown)
	}
	for _, rule := range []sequence.Rule{
		sequence.RuleValue, sequence.RuleMissingID, sequence.RuleDuplicateID, sequence.RuleCallID, sequence.RuleMessage, sequence.RulePlace,
		sequence.RuleOrphan, sequence.RuleRepeated, sequence.RuleParent, sequence.RuleUnanswered, sequence.RuleOpen,
	} {
		if !strings.Contains(string(page), "`"+string(rule)+"`") {
			t.Errorf("the rule %q is not documented", rule)
		}
	}
	for name := range strings.FieldsSeq(`kind v id time metadata content title uri model finish usage input cached
		output reasoning message call_id name arguments parent invocation code retryable
		attempt key repeatable approved wait for deadline who conversation identity fingerprint question verdict by reason
		type text mime data url blob description size json`) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the member %q is not documented", name)
		}
	}
}
