// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// normal is what --trace printed, without what differs from run to run.
func normal(text string) string {
	text = regexp.MustCompile(`trace [0-9a-f]{32}`).ReplaceAllString(text, "trace ID")
	text = regexp.MustCompile(` +[0-9.]+ (ms|s)\b`).ReplaceAllString(text, " TIME")
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "ADDRESS")
}

// The trees of a turn, and of a call, as they really come out. With
// CONSORT_WRITE_GOLDEN=1 the files are written.
func TestTraceFlag(t *testing.T) {
	t.Parallel()
	weather := []string{"call", "atlas", "weather", `{"city":"Oslo"}`}
	c := newCollector(t)
	for name, test := range map[string]struct {
		r    run
		args []string
	}{
		"run":  {run{}, []string{"run", "hi"}},
		"chat": {run{stdin: "hi\n", env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}}, []string{"chat", "--history", "none"}},
		"json": {run{env: []string{"OTEL_TRACES_SAMPLER=always_off"}}, []string{"run", "hi", "--json"}},
		"call": {run{}, weather},
	} {
		o := test.r.consort(t, append(test.args, "--trace", "--config", weatherTurn(t))...).expect(t, exit.Done)
		lacks(t, name+": standard output", o.stdout, "trace ", "execute_tool")
		golden := filepath.Join("testdata", "trace", map[bool]string{true: "call", false: "turn"}[name == "call"]+".txt")
		_, got, found := strings.Cut(o.stderr, "\ntrace ")
		if got = normal("trace " + got); !found {
			t.Errorf("%s: there is no trace: %s", name, o.stderr)
		}
		if os.Getenv("CONSORT_WRITE_GOLDEN") != "" {
			if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if paths, _ := c.paths(t); len(paths) == 0 {
		t.Error("the trace was shown, and not exported")
	}
	o := run{env: []string{"OTEL_TRACES_SAMPLER=always_off", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}}.consort(t,
		append(weather, "--trace", "--config", weatherTurn(t))...)
	contains(t, "standard error", o.stderr, "no spans;", "OTEL_TRACES_SAMPLER")
}

// A turn that fails shows where.
func TestTraceOfAFailure(t *testing.T) {
	t.Parallel()
	o := consort(t, "run", "hi", "--trace", "--config",
		file(t, fmt.Sprintf("[model]\nname = \"gone\"\nbase_url = %q\nmax_retries = 0\n", "http://127.0.0.1:1/v1")))
	contains(t, "standard error", o.expect(t, exit.Failed).stderr, "invoke_agent", "UNAVAILABLE", "consort: ")
}
