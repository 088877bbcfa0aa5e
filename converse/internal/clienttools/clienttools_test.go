// SPDX-License-Identifier: Apache-2.0

package clienttools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/internal/toolname"
)

// Tools that cannot be offered are named with the reason.
func TestCheck(t *testing.T) {
	many := make([]clienttools.Tool, clienttools.MaxTools+1)
	for i := range many {
		many[i].Name = fmt.Sprint("tool-", i)
	}
	large := clienttools.Tool{Name: "large", Description: strings.Repeat("x", 300<<10)}
	schema := func(text string) clienttools.Tool {
		return clienttools.Tool{Name: "odd", Parameters: json.RawMessage(text)}
	}
	for _, c := range []struct {
		tools []clienttools.Tool
		index int
		why   string
	}{
		{nil, 0, ""},
		{many[:clienttools.MaxTools], 0, ""},
		{[]clienttools.Tool{{Name: "a"}, {Name: "a_b-C1"}}, 0, ""},
		{many, clienttools.MaxTools, "at most 64"},
		{[]clienttools.Tool{{Name: "a"}, {}}, 1, `""`},
		{[]clienttools.Tool{{Name: "a"}, {Name: "a"}}, 1, `two tools have the name "a"`},
		{[]clienttools.Tool{{Name: toolname.For("files", "read")}}, 0, `"files__read"`},
		{[]clienttools.Tool{{Name: "my tool"}}, 0, `"my tool"`},
		{[]clienttools.Tool{{Name: strings.Repeat("x", 65)}}, 0, "xxx"},
		{[]clienttools.Tool{large}, 0, `"large"`},
		{[]clienttools.Tool{schema(`[]`)}, 0, `"odd"`},
		{[]clienttools.Tool{schema(`{"type":"string"}`)}, 0, `"odd"`},
		{[]clienttools.Tool{schema(`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`)}, 0, `"odd"`},
	} {
		index, err := clienttools.Check(c.tools)
		if (err == nil) != (c.why == "") || index != c.index || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%d tools, the first %.60v: %d, %v", len(c.tools), c.tools, index, err)
		}
	}
}

// Metadata that a program has damaged offers nothing, and only a message of a user has tools.
func TestOf(t *testing.T) {
	whole := clienttools.With(canister.Fields{"mine": json.RawMessage("1")}, []clienttools.Tool{{Name: "a"}})
	var key string
	for name := range whole {
		if name != "mine" {
			key = name
		}
	}
	of := func(text string) int {
		user := canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: canister.Fields{key: json.RawMessage(text)}}}}
		return len(clienttools.Of(user))
	}
	if got := clienttools.Of(canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: whole}}}); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("got %v", got)
	}
	if of(`1`) != 0 || of(`[{"name":"files__read"},{"name":"b"}]`) != 1 || of(`[{"name":1}]`) != 0 {
		t.Error("damaged metadata are read")
	}
	if clienttools.Of(canister.Document{Head: canister.Head{Extra: canister.Extra{Metadata: whole}}}) != nil || clienttools.With(nil, nil) != nil {
		t.Error("a document brings tools, or none are noted")
	}
	if clienttools.IsCall(canister.Wait{For: canister.WaitApproval, Head: canister.Head{Extra: canister.Extra{Metadata: clienttools.Mark()}}}) {
		t.Error("an approval is taken for a call of the client")
	}
}
