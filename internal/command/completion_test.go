// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// The shell completes what is known: conversations, ensembles, tools, prompts, resources
// and the values of flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	config := file(t, model(t, says("Hello.")), table)
	store := filepath.Join(t.TempDir(), "history.db")
	if o := consort(t, "run", "--config", config, "--history", store, "--conversation", "talk-1", "Good morning"); o.status != 0 {
		t.Fatal(o.stderr)
	}
	beyond := " --config " + config + " --history " + store + " "
	consort(t, "history", "tag", "talk-1", "mornings", "--history", store).expect(t, exit.Done)
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
		"chat --config " + config + " --model |":     "scripted\t[model]\ngpt-5-mini\tOpenAI; the key is in OPENAI_API_KEY\nclaude-sonnet-5\t",
		"demo --model |claude":                       "claude-sonnet-5",
		"run --set |mod":                             "model.\n:6",
		"run --set |model.temp":                      "model.temperature=\ta number\n:6",
		"run --set |model.api=c":                     "model.api=chat\n:4",
		"run --set |model.stream=":                   "model.stream=true\nmodel.stream=false\n:4",
		"run --set |model.seed=":                     "",
		"run --set |nothing":                         "",
		"run --set |approval.ru":                     "approval.rules=\ta list of tables\n:6",
		"run --set |mcp.new.call_":                   "mcp.new.call_timeout=\ta duration\n:6",
		"run --set |mcp.new.env":                     "mcp.new.environment.\n:6",
		"run --config " + config + " --set |mcp.":    "mcp.library.\n:6",
		"run --config " + config + " --approve |":    "all\trun each call\nreads\tonly those that change nothing\nlibrary__*\tthe tools of library",
		"history list" + beyond + "--tag |":          "mornings",
		"init --import |":                            "all\nnone",
		"check --config |":                           "toml\njson\n:8",
		"check --base-url |":                         "",
		"version |":                                  "",
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
