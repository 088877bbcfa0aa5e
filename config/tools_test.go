// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/invoker"
)

// A model that finds tools is always shown those that are pinned, and those that a rule
// names in full and does not deny.
func TestToolsThatAreAlwaysShown(t *testing.T) {
	parts, err := config.Assemble(parsed(t, `
[model]
name = "m"
base_url = "http://127.0.0.1:1"
[tools]
mode = "search"
pinned = ["*__pinned"]
[[approval.rules]]
action = "allow"
ensembles = ["files"]
tools = ["read", "wr*"]
[[approval.rules]]
action = "ask"
ensembles = ["files"]
tools = ["write"]
[[approval.rules]]
action = "deny"
ensembles = ["files"]
tools = ["delete"]
[[approval.rules]]
action = "allow"
tools = ["look"]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close(context.Background()) })
	set := &converse.Toolset{}
	for _, name := range []string{"files__delete", "files__look", "files__pinned", "files__read", "files__write", "tools__call_tool", "tools__find_tools"} {
		set.Definitions = append(set.Definitions, &invoker.Definition{Name: name})
	}
	shown, _ := parts.Model.(*findtools.Model).Shown(set)
	if got := strings.Join(slices.Sorted(maps.Keys(shown)), " "); got != "files__pinned files__read files__write tools__call_tool tools__find_tools" {
		t.Errorf("it is shown %s", got)
	}
}
