// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
)

// TestAskWrites: without a default, a program can let its person decide about all calls
// but trusted reads; a default or a rule of the file decides otherwise.
func TestAskWrites(t *testing.T) {
	asked, allowed := converse.Deny("asked"), converse.Allow()
	for name, test := range map[string]struct {
		tables      string
		write, read converse.Decision
	}{
		"nothing":       {"", asked, allowed},
		"within alone":  {"[approval]\nwithin = \"1h\"\n", asked, allowed},
		"default allow": {"[approval]\ndefault = \"allow\"\n", allowed, allowed},
		"default ask":   {"[approval]\ndefault = \"ask\"\n", asked, asked},
		"a rule":        {"[[approval.rules]]\naction = \"allow\"\ntools = [\"w*\"]\n", allowed, allowed},
		"another rule":  {"[[approval.rules]]\naction = \"ask\"\ntools = [\"r*\"]\n", asked, asked},
	} {
		c, err := parse(test.tables, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wanted := range []bool{true, false} {
			parts, err := config.Assemble(c, &config.AssembleOptions{
				AskWrites: wanted,
				Ask:       func(context.Context, converse.Approval) (converse.Decision, error) { return asked, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer parts.Close(context.Background())
			decide := parts.Options.Approve
			if !wanted {
				if (name == "nothing" || name == "within alone") && decide != nil {
					t.Errorf("%s: a program is asked, although it did not say so", name)
				}
				continue
			}
			if decide == nil {
				decide = func(context.Context, converse.Approval) (converse.Decision, error) { return allowed, nil }
			}
			for ask, want := range map[string]converse.Decision{"write": test.write, "read": test.read} {
				got, err := decide(t.Context(), converse.Approval{Tool: ask, ReadOnly: ask == "read"})
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %s is %+v, %v; want %+v", name, ask, got, err, want)
				}
			}
		}
	}
}
