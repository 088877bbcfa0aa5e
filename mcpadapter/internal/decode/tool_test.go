// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// A member whose name differs in case is another member, and one of the wrong type costs no other.
func TestToolMembers(t *testing.T) {
	yes, no := true, false
	tasks := json.RawMessage(`{"tasks":{"requests":{"tools":{"call":{}}}}}`)
	for raw, want := range map[string]struct {
		title     string
		hints     invoker.Hints
		needsTask bool
	}{
		`{"name":"t","annotations":{"title":"T","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true},"execution":{"taskSupport":"required"}}`: {
			"T", invoker.Hints{ReadOnly: true, Idempotent: true, Destructive: &no, OpenWorld: &yes}, true},
		`{"name":"t","annotations":{"Title":"T","ReadOnlyHint":true,"DestructiveHint":false},"execution":{"TaskSupport":"required"}}`: {},
		`{"name":"t","title":"own","annotations":{"title":"T","readOnlyHint":3,"destructiveHint":3,"idempotentHint":true}}`:           {"own", invoker.Hints{Idempotent: true}, false},
		`{"name":"t","title":4,"annotations":[],"execution":3}`:                                                                       {},
	} {
		tool, err := ReadTool(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if def := tool.Definition(); def.Title != want.title || !reflect.DeepEqual(def.Hints, want.hints) || tool.NeedsTask(tasks) != want.needsTask {
			t.Errorf("%s: %q, %+v, %v", raw, def.Title, def.Hints, tool.NeedsTask(tasks))
		}
	}
}
