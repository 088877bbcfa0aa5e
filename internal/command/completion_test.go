// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"
)

// The shell completes what is known: conversations, ensembles, tools, prompts, resources
// and the values of flags.
func TestCompletion(t *testing.T) {
	table, _ := library(t, "")
	config := file(t, model(t, says("Hello.")), table)
	store := filepath.Join(t.TempDir(), "history.db")
	if o := consort(t, "run", "--config", config, "--history", store, "--conversation", "talk-1", "Good morning"); o.status != 0 {
		t.Fatal(o.stderr)
	}
	beyond := " --config " + config + " --history " + store + " "
	for line, want := range map[string]string{
		"history show" + beyond + "|":                "talk-1\tGood morning",
		"resume" + beyond + "|ta":                    "talk-1\tGood morning",
		"resume" + beyond + "|x":                     "",
		"chat" + beyond + "--conversation |":         "talk-1\tGood morning",
		"history export" + beyond + "--format |m":    "markdown",
		"call --config " + config + " |":             "library",
		"call --config " + config + " library |l":    "leak",
		"call --config " + config + " |nothing":      "",
		"run --config " + config + " --prompt |":     "library__greet",
		"resources --config " + config + " --read |": "note:///welcome",
		"tools --log-level |":                        "debug\ninfo\nwarn\nerror",
		"--log-format |":                             "console\njson",
		"|compl":                                     "completion",
	} {
		text, typed, _ := strings.Cut(line, "|")
		args := append(append([]string{"__complete"}, strings.Fields(text)...), typed)
		o := consort(t, args...)
		found, _, _ := strings.Cut(o.stdout, ":") // before the directive
		if !strings.Contains(o.stdout, want) || want == "" && strings.TrimSpace(found) != "" || o.status != 0 {
			t.Errorf("%q completes to %q, want %q", line, o.stdout, want)
		}
	}
	if o := (run{dir: t.TempDir()}).consort(t, "__complete", "call", ""); o.status != 0 || !strings.HasPrefix(o.stdout, ":4") {
		t.Errorf("without a configuration: %d %q", o.status, o.stdout)
	}
}
