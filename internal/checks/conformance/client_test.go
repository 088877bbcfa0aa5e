// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// clientRequirements are the frozen sets of required client scenarios, with the number of
// scenarios in each.
var clientRequirements = []struct {
	revision  string
	scenarios int
}{
	{"2025-11-25", 18},
	{"2026-07-28", 32},
}

// beyondClient are scenarios that no revision requires and the client passes all the
// same: that a tool's schema survives unchanged, and that a machine can sign in.
var beyondClient = []string{"json-schema-2020-12-preservation", "auth/client-credentials-basic"}

// expectedClientFailures are the scenarios of extensions in the suite that no revision
// requires and the client does not pass. Each needs an OAuth flow that a program has to
// supply: HTTPOptions.OAuth accepts any, and the client under test has those of a person
// and of a machine with a secret.
var expectedClientFailures = map[string]string{
	"auth/client-credentials-jwt":           "the SDK has no flow in which a machine signs in with a signed assertion (RFC 7523, section 2.2)",
	"auth/enterprise-managed-authorization": "the SDK's handler (auth/extauth) needs a login at an identity provider first, which the client under test has not",
	"auth/dpop":                             "the SDK's flows do not bind tokens to a key (RFC 9449), as package login does: see TestLoginScenarios",
	"auth/dpop-nonce":                       "the SDK's flows do not bind tokens to a key (RFC 9449), as package login does: see TestLoginScenarios",
	"auth/wif-jwt-bearer":                   "the SDK has the grant of RFC 7523, section 2.1, only within enterprise-managed authorization",
}

// alone are scenarios that measure time to 50 ms, and so want the machine to
// themselves: they are run again when they failed among the others.
var alone = []string{"sse-retry"}

func TestClientScenarios(t *testing.T) {
	s := suite(realservers.Need(t).Conformance())
	client := buildClient(t)
	for _, want := range clientRequirements {
		t.Run(want.revision, func(t *testing.T) {
			required := s.required(t, "Client", want.revision)
			if len(required) != want.scenarios {
				t.Errorf("%d scenarios are required, want %d", len(required), want.scenarios)
			}
			reports := s.run(t, "client", "--command", client, "--requirements", want.revision)
			passed, checks := 0, 0
			for _, scenario := range slices.Concat(required, beyondClient) {
				report, ran := reports[scenario]
				if ran && !report.passed() && slices.Contains(alone, scenario) {
					t.Logf("%s failed among the others; once more, alone:\n%s", scenario, report)
					report = s.run(t, "client", "--command", client, "--scenario", scenario, "--spec-version", want.revision)[scenario]
				}
				if !ran || !report.passed() {
					t.Errorf("%s failed:\n%s", scenario, report)
					continue
				}
				if slices.Contains(required, scenario) {
					passed, checks = passed+1, checks+report.successes
				}
			}
			for scenario, reason := range expectedClientFailures {
				if report, ran := reports[scenario]; ran && report.passed() {
					t.Errorf("%s passed, but is expected to fail: %s", scenario, reason)
				}
			}
			t.Logf("conformance %s: %d of %d required scenarios passed with %d checks", want.revision, passed, want.scenarios, checks)
		})
	}
}

// buildClient builds the client under test.
func buildClient(t *testing.T) string {
	t.Helper()
	client := build(t, "client")
	if strings.Contains(client, " ") {
		t.Fatalf("the suite splits its command at spaces: %q", client)
	}
	return client
}
