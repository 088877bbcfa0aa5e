// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// finds checks that each case of a suite can fail. The keys of breaks are cases,
// with a word behind a space where one is broken in several ways; test runs the
// suite over something that breaks the rule whose key stands in the variable of
// the environment, and is run in a process of its own.
func finds[B any](t *testing.T, test, variable string, breaks map[string]B) {
	for _, name := range slices.Sorted(maps.Keys(breaks)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule, _, _ := strings.Cut(name, " ")
			pattern := "^" + test + "$/^" + strings.ReplaceAll(regexp.QuoteMeta(rule), "/", "$/^") + "$"
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", pattern, "-test.v")
			command.Env = append(os.Environ(), variable+"="+name)
			output, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "the rule: ") {
				t.Errorf("the case did not find it: %v\n%s", err, output)
			}
		})
	}
}

// brokenRule returns the key of the rule to break, in the process that finds starts.
func brokenRule(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Skip("run by a test that the suite finds what is broken")
	}
	return name
}
