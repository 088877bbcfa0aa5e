// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/launch"
	"github.com/consort-go/consort/internal/testing/realservers"
)

// serverRequirements are the frozen sets of required server scenarios, the number of
// scenarios in each, and further ones that the server passes too, as the server of the
// bare SDK does.
var serverRequirements = []struct {
	revision  string
	scenarios int
	beyond    []string
}{
	{"2025-11-25", 30, []string{"server-session-lifecycle", "json-schema-2020-12"}},
	{"2026-07-28", 37, []string{"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}},
}

const noTasks = "tasks are an extension (SEP-2663) which neither the SDK nor this server has"

// expectedFailures are the scenarios that the suite runs, no revision requires,
// and the server does not pass. The bare SDK's own server fails each of them.
var expectedFailures = map[string]string{
	"server-sse-polling": "a stream whose events can be asked for again needs a store of events (SEP-1699); " +
		"the SDK's server has none either and gets the same warning",
	"tasks-capability-negotiation": noTasks,
	"tasks-dispatch-and-envelope":  noTasks,
	"tasks-lifecycle":              noTasks,
	"tasks-mrtr-composition":       noTasks,
	"tasks-mrtr-input":             noTasks,
	"tasks-request-headers":        noTasks,
	"tasks-request-state-removal":  noTasks,
	"tasks-required-task-error":    noTasks,
	"tasks-status-notifications":   noTasks + "; its one check is skipped",
	"tasks-wire-fields":            noTasks,
}

// TestServerScenarios runs both revisions against one handler.
func TestServerScenarios(t *testing.T) {
	s := suite(realservers.Need(t).Conformance())
	url := serve(t)
	for _, want := range serverRequirements {
		t.Run(want.revision, func(t *testing.T) {
			required := s.required(t, "Server", want.revision)
			if len(required) != want.scenarios {
				t.Errorf("%d scenarios are required, want %d", len(required), want.scenarios)
			}
			reports := s.run(t, "server", "--url", url, "--requirements", want.revision)
			passed, checks := 0, 0
			for scenario, report := range reports {
				scenario = strings.TrimPrefix(scenario, "server-")
				reason, expected := expectedFailures[scenario]
				switch {
				case !report.passed() && !expected:
					t.Errorf("%s failed:\n%s", scenario, report)
				case report.passed() && expected:
					t.Errorf("%s passed, but is expected to fail: %s", scenario, reason)
				case slices.Contains(required, scenario):
					passed, checks = passed+1, checks+report.successes
				}
			}
			for _, scenario := range slices.Concat(required, want.beyond) {
				if _, ran := reports["server-"+scenario]; !ran {
					t.Errorf("%s was not run", scenario)
				}
			}
			t.Logf("conformance %s: %d of %d required scenarios passed with %d checks", want.revision, passed, want.scenarios, checks)
		})
	}
}

// serve runs the server under test and returns its URL. The server is told to
// end with the test, and has to.
func serve(t *testing.T) string {
	t.Helper()
	return launch.Program(t, exec.Command(build(t, "server")))
}
