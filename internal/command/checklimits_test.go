// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// check reports the tools that the model's server does not accept, and those with
// shortened descriptions.
func TestCheckTellsOfTheLimitsOfTheModel(t *testing.T) {
	t.Parallel()
	table := model(t) + "max_tools = 1\nmax_description = 45\n"
	o := consort(t, "--config", file(t, table, atlas(0)), "check", "--offline").expect(t, exit.Done)
	contains(t, "the report", o.stdout, "is set aside: the model's API accepts 1 tools per request",
		"is shortened: its description is too long for the model's server, which takes 45 characters (max_description):")
	o = consort(t, "--config", file(t, table, atlas(0)), "check", "--json", "--offline").expect(t, exit.Done)
	contains(t, "the document", o.stdout, `"shortened": [`, `"tools": 1`)
}
