// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// TestLoginScenarios: the command, as a person uses it, passes the suite's scenarios of
// authorization, also those that no revision requires.
func TestLoginScenarios(t *testing.T) {
	s := suite(realservers.Need(t).Conformance())
	command := filepath.Join(t.TempDir(), "consort")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", command, "../../../cmd/consort").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	t.Setenv("CONSORT", command)
	person := build(t, "person")
	for _, set := range []struct {
		args      []string
		scenarios int
		unscored  []string // are among them
	}{
		{[]string{"--suite", "auth"}, 14, nil},
		{[]string{"--requirements", "2026-07-28"}, 31, []string{"auth/dpop", "auth/dpop-nonce"}},
	} {
		reports := s.run(t, append([]string{"client", "--command", person}, set.args...)...)
		maps.DeleteFunc(reports, func(scenario string, _ report) bool { return !strings.HasPrefix(scenario, "auth/") })
		if len(reports) != set.scenarios {
			t.Errorf("%v: %d scenarios ran, want %d", set.args, len(reports), set.scenarios)
		}
		for _, scenario := range set.unscored {
			if _, ran := reports[scenario]; !ran {
				t.Errorf("%v: %s did not run", set.args, scenario)
			}
		}
		passed, checks := 0, 0
		for _, scenario := range slices.Sorted(maps.Keys(reports)) {
			if report := reports[scenario]; report.passed() {
				passed, checks = passed+1, checks+report.successes
			} else {
				t.Errorf("%s failed:\n%s", scenario, report)
			}
		}
		t.Logf("%v: %d scenarios passed with %d checks", set.args, passed, checks)
	}
}
