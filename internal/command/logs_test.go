// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
)

// With JSON each line of standard error is an object, whoever writes it.
func TestLogsInJSON(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	fileSays := file(t, table, broken, "[log]\nformat = \"json\"\nlevel = \"debug\"\n")
	flagSays := []string{"--log-format", "json"}
	for name, args := range map[string][]string{
		"file":        {"call", "library", "leak", "--config", fileSays},
		"flag":        append(flagSays, "run", "hi", "--config", file(t, model(t, says("", calls("library__leak", `{}`)), says("x")), table, allows)),
		"file, trace": {"call", "library", "echo", "--trace", "--config", fileSays},
		"wrong":       append(flagSays, "call", "library", "leak", "--config", file(t, "[modle]\n")),
		"nothing":     append(flagSays, "frobnicate"),
		"too much":    append(flagSays, "tools", "frobnicate"),
		"no flag":     append(flagSays, "tools", "--frobnicate"),
	} {
		o := consort(t, args...)
		events := 0
		for line := range strings.Lines(o.stderr) {
			var entry struct {
				TS    time.Time
				Level string
				Msg   string
				Event string
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.TS.IsZero() || entry.Level == "" || entry.Msg == "" || entry.Event == "" {
				t.Errorf("%s: %v: %q", name, err, line)
			}
			events++
		}
		if events == 0 {
			t.Errorf("%s: nothing was said", name)
		}
		lacks(t, name, o.stderr, password)
	}
	o := consort(t, "--log-format", "xml", "version").expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "--log-format xml", "console or json")
	plain := consort(t, "call", "library", "leak", "--log-format", "console", "--config", fileSays)
	lacks(t, "standard error", plain.stderr, `{"level"`)
}

func TestConfigOfACommandThatReadsNone(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"demo", "version"} {
		o := consort(t, command, "--config", "other.toml").expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, "--config", "consort "+command, "omit the flag")
	}
}
