// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// The command line of the inspector, each of its methods over both transports, in
// protocol 2025-11-25 ("legacy") and in 2026-07-28.
func TestInspector(t *testing.T) {
	inspector := realservers.Need(t).Inspector()
	url := launchShop(t)
	stdio := []string{os.Args[0], "-e", role + "=stdio", "--protocol-era"}
	http := []string{url, "--transport", "http", "--header", "Authorization: Bearer token-of-ada", "--protocol-era"}
	reach := map[string][]string{
		"stdio/legacy": with(stdio, "legacy"), "stdio/modern": with(stdio, "modern"),
		"http/legacy": with(http, "legacy"), "http/modern": with(http, "modern"),
	}
	for _, test := range []struct {
		args  []string
		fails bool
		wants []string
	}{
		{args: []string{"tools/list"}, wants: []string{`"shop__add"`, `"outputSchema"`}},
		{args: []string{"tools/call", "--tool-name", "shop__add", "--tool-arg", "a=2", "b=3"}, wants: []string{`"sum": 5`}},
		{args: []string{"tools/call", "--tool-name", "shop__find", "--tool-arg", "id=x1"}, fails: true,
			wants: []string{`"isError": true`, `"code": "NOT_FOUND"`}},
		{args: []string{"resources/list"}, wants: []string{`"shop://opening-hours"`}},
		{args: []string{"resources/templates/list"}, wants: []string{`"shop://goods/{name}"`}},
		{args: []string{"resources/read", "--uri", "shop://goods/tea"}, wants: []string{`"There is tea."`}},
		{args: []string{"prompts/list"}, wants: []string{`"shop__sell"`}},
		{args: []string{"prompts/get", "--prompt-name", "shop__sell", "--prompt-args", "goods=tea"}, wants: []string{`"Sell me some tea."`}},
	} {
		for over, how := range reach {
			t.Run(over+"/"+strings.ReplaceAll(test.args[0], "/", "-"), func(t *testing.T) {
				t.Parallel()
				argv := slices.Concat(inspector, how, []string{"--method"}, test.args)
				out, err := output(t, argv)
				if failed := err != nil; failed != test.fails {
					t.Errorf("the inspector ended with %v", err)
				}
				for _, want := range test.wants {
					if !strings.Contains(string(out), want) {
						t.Errorf("there is no %s in\n%s", want, out)
					}
				}
			})
		}
	}
}

func with(words []string, more ...string) []string { return slices.Concat(words, more) }

func TestInspectorNeedsAToken(t *testing.T) {
	inspector := realservers.Need(t).Inspector()
	out, err := output(t, slices.Concat(inspector, []string{
		launchShop(t), "--transport", "http", "--stored-auth-only", "--header", "Authorization: Bearer wrong", "--method", "tools/list",
	}))
	if err == nil || strings.Contains(string(out), "shop__add") {
		t.Errorf("the inspector ended with %v:\n%s", err, out)
	}
}
