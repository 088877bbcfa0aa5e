// SPDX-License-Identifier: Apache-2.0

// Package conformance runs the conformance suite of the protocol over the
// client in its subdirectory, which goes through a roster, its ensembles and
// their invokers. A scenario counts as the suite counts it: a failed check, a
// warning, a time-out or a client that gives up fails it. No failure is
// expected.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/realservers"
)

// scenarioTime bounds one scenario, by the suite's own count; all of them run
// side by side on a machine that may be busy. It is longer than the client's
// own limits, so that the client says what is wrong.
const scenarioTime = 90 * time.Second

// requirements are the frozen sets of what a client has to pass, and how many
// scenarios there are in each.
var requirements = []struct {
	revision  string
	scenarios int
}{
	{"2025-11-25", 18},
	{"2026-07-28", 32},
}

// beyond are scenarios that no revision requires and the client passes all the
// same: that a tool's schema survives unchanged, and that a machine can sign in.
var beyond = []string{"json-schema-2020-12-preservation", "auth/client-credentials-basic"}

// alone are scenarios that measure time to 50 ms, and so want the machine to
// themselves: they are run again when they failed among the others.
var alone = []string{"sse-retry"}

func TestRequiredScenarios(t *testing.T) {
	servers := realservers.Need(t)
	s := suite{argv: servers.Conformance(), client: buildClient(t)}
	for _, want := range requirements {
		t.Run(want.revision, func(t *testing.T) {
			required := s.required(t, want.revision)
			if len(required) != want.scenarios {
				t.Errorf("%d scenarios are required, want %d", len(required), want.scenarios)
			}
			reports := s.run(t, "--requirements", want.revision)
			passed, checks := 0, 0
			for _, scenario := range slices.Concat(required, beyond) {
				report, ran := reports[scenario]
				if ran && !report.passed() && slices.Contains(alone, scenario) {
					t.Logf("%s failed among the others; once more, alone:\n%s", scenario, report)
					report = s.run(t, "--scenario", scenario, "--spec-version", want.revision)[scenario]
				}
				if !ran || !report.passed() {
					t.Errorf("%s failed:\n%s", scenario, report)
					continue
				}
				if slices.Contains(required, scenario) {
					passed, checks = passed+1, checks+report.successes
				}
			}
			t.Logf("conformance %s: %d of %d required scenarios passed with %d checks", want.revision, passed, want.scenarios, checks)
		})
	}
}

// buildClient builds the client under test.
func buildClient(t *testing.T) string {
	t.Helper()
	client := filepath.Join(t.TempDir(), "client")
	if strings.Contains(client, " ") {
		t.Fatalf("the suite splits its command at spaces: %q", client)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", client, "./client")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the client: %v\n%s", err, out)
	}
	return client
}

// suite is the conformance suite and the client that it looks at.
type suite struct {
	argv   []string
	client string
}

// required lists the client scenarios that a revision requires.
func (s suite) required(t *testing.T, revision string) []string {
	t.Helper()
	out, err := s.command(t, "list", "--requirements", revision).Output()
	if err != nil {
		t.Fatalf("listing scenarios: %v", err)
	}
	_, list, _ := strings.Cut(string(out), "Client scenarios")
	list, _, _ = strings.Cut(list, "\n\n")
	var scenarios []string
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			scenarios = append(scenarios, name)
		}
	}
	return scenarios
}

// run runs scenarios and returns a report of each. The suite's exit status
// also covers what is not required, so that the reports alone count.
func (s suite) run(t *testing.T, which ...string) map[string]report {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{
		"client", "--command", s.client, "--output-dir", dir, "--timeout", strconv.FormatInt(scenarioTime.Milliseconds(), 10),
	}, which...)
	out, err := s.command(t, args...).CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatalf("running the suite: %v\n%s", err, out)
	}
	reports, err := readReports(dir)
	if err != nil || len(reports) == 0 {
		t.Fatalf("the suite left no reports: %v\n%s", err, out)
	}
	return reports
}

func (s suite) command(t *testing.T, args ...string) *exec.Cmd {
	args = append(slices.Clone(s.argv), args...)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// report is what the suite found in one scenario.
type report struct {
	successes int
	wrong     []check // failures and warnings, which count alike
	stderr    string  // of the client
}

// check is one check of the suite.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	Description  string `json:"description"`
	ErrorMessage string `json:"errorMessage"`
}

// passed reports whether the scenario was passed: one without any check was not.
func (r report) passed() bool { return r.successes > 0 && len(r.wrong) == 0 }

// String lists what was wrong.
func (r report) String() string {
	var b strings.Builder
	for _, c := range r.wrong {
		fmt.Fprintf(&b, "  %s %s: %s: %s\n", c.Status, c.ID, c.Description, c.ErrorMessage)
	}
	return fmt.Sprintf("%sthe client said:\n%s", &b, r.stderr)
}

// stamp ends the name of a scenario's directory.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readReports reads what the suite left in dir, by scenario.
func readReports(dir string) (map[string]report, error) {
	reports := make(map[string]report)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		scenario, err := filepath.Rel(dir, stamp.ReplaceAllString(filepath.Dir(path), ""))
		if err != nil {
			return err
		}
		reports[filepath.ToSlash(scenario)], err = readReport(filepath.Dir(path))
		return err
	})
	return reports, err
}

func readReport(dir string) (report, error) {
	text, err := os.ReadFile(filepath.Join(dir, "checks.json"))
	if err != nil {
		return report{}, err
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		return report{}, err
	}
	stderr, _ := os.ReadFile(filepath.Join(dir, "stderr.txt")) // for people; may be missing
	r := report{stderr: string(stderr)}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			r.successes++
		case "FAILURE", "WARNING":
			r.wrong = append(r.wrong, c)
		}
	}
	return r, nil
}
