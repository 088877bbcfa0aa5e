// SPDX-License-Identifier: Apache-2.0

package approving_test

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/command/approving"
)

// Another environment, other headers and other roots are another server; the same ones in
// another order are not.
func TestTheAddressOfAServer(t *testing.T) {
	headers := func(pairs ...string) map[string]values.Value {
		all := map[string]values.Value{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = values.Plain(pairs[i+1])
		}
		return all
	}
	words := []values.Value{values.Plain("server"), values.Plain("-x")}
	seen := map[string]int{}
	for i, server := range []*config.Server{
		{Transport: config.Stdio, Command: words},
		{Transport: config.Stdio, Command: words[:1]},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1", "B", "2")},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1", "B", "3")},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1B2")},
		{Transport: config.Stdio, Command: words, Roots: []config.Root{{Path: values.Plain("/root-a")}}},
		{Transport: config.Stdio, Command: words, Roots: []config.Root{{Path: values.Plain("/root-b")}}},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/")},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/"), Headers: headers("X-User", "ann")},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/"), Headers: headers("X-User", "bob")},
	} {
		of := approving.Servers(&config.Config{MCP: map[string]*config.Server{"s": server}})
		address := of("s").Address
		if before, there := seen[address]; there {
			t.Errorf("the servers %d and %d have the same address", before, i)
		}
		seen[address] = i
		for range 20 {
			if of("s").Address != address {
				t.Fatalf("server %d has several addresses", i)
			}
		}
		if label := of("s").Label; strings.Contains(label, "ann") || strings.Contains(label, "/root") && server.Transport == config.Stdio {
			t.Errorf("the label is %q", label)
		}
	}
}
