// SPDX-License-Identifier: Apache-2.0

// Package conformance runs the conformance suite of the protocol over the
// client and over the server in its subdirectories. Both go through rosters,
// ensembles and invokers, as programs do. A scenario counts as the suite counts
// it: a failed check, a warning, a time-out or a client that gives up fails it.
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
)

// scenarioTime bounds one scenario, by the suite's own count; all of them run
// concurrently on a machine that may be busy. It is longer than the client's own limits,
// so that the client reports the error.
const scenarioTime = 90 * time.Second

// suite is the command of the conformance suite.
type suite []string

// required lists the scenarios, "Client" or "Server", that a revision requires.
func (s suite) required(t *testing.T, side, revision string) []string {
	t.Helper()
	out, err := s.command(t, "list", "--requirements", revision).Output()
	if err != nil {
		t.Fatalf("listing scenarios: %v", err)
	}
	_, list, _ := strings.Cut(string(out), side+" scenarios")
	list, _, _ = strings.Cut(list, "\n\n")
	var scenarios []string
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			scenarios = append(scenarios, name)
		}
	}
	return scenarios
}

// run runs scenarios and returns a report of each. The suite's exit status also covers
// optional scenarios, so that only the reports count.
func (s suite) run(t *testing.T, args ...string) map[string]report {
	t.Helper()
	dir := t.TempDir()
	args = append(args, "--output-dir", dir, "--timeout", strconv.FormatInt(scenarioTime.Milliseconds(), 10))
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
	args = append(slices.Clone(s), args...)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// report is the suite's findings about one scenario.
type report struct {
	successes int
	wrong     []check // failures and warnings, which count alike
	stderr    string  // of the client; empty for a server
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

// String lists the failures.
func (r report) String() string {
	var b strings.Builder
	for _, c := range r.wrong {
		fmt.Fprintf(&b, "  %s %s: %s: %s\n", c.Status, c.ID, c.Description, c.ErrorMessage)
	}
	if r.stderr != "" {
		fmt.Fprintf(&b, "the client said:\n%s", r.stderr)
	}
	return b.String()
}

// stamp ends the name of a scenario's directory.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readReports reads the suite's reports in dir, by scenario.
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

// build builds the program in a subdirectory.
func build(t *testing.T, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), program)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, "./"+program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the %s: %v\n%s", program, err, out)
	}
	return binary
}
