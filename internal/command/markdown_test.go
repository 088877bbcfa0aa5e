// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/screen"
)

const packing = "# Packing\n\nTake a **warm** hat, and see [the forecast](https://example.com/oslo).\n\n" +
	"| Day | Weather |\n|-----|---------|\n| Mon | snow |\n| Tue | sun |\n\n1. hat\n   - wool\n2. scarf\n\n```python\nprint(\"warm\")\n```\n"

// On a terminal an answer is rendered; elsewhere it stays as the model wrote it.
func TestRunRendersMarkdown(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says(packing)), atlas(0))
	raw := run{}.onTerminal(t, "run", "Oslo?", "--config", path).ends(exit.Done)
	if !strings.Contains(raw, "\x1b[1mwarm\x1b[0m") {
		t.Errorf("nothing is bold in %q", raw)
	}
	e := screen.NewEmulator(120, 40, func(string) {})
	e.Write([]byte(raw))
	want := "Packing\n\nTake a warm hat, and see the forecast (https://example.com/oslo).\n\n" +
		"Day │ Weather\n────┼────────\nMon │ snow\nTue │ sun\n\n1. hat\n   • wool\n2. scarf\n\n  ── python\n  print(\"warm\")\n"
	if got := strings.TrimRight(e.All(), "\n") + "\n"; got != want {
		t.Errorf("the screen is\n%s\nwant\n%s", got, want)
	}
	if got := (run{}).consort(t, "run", "Oslo?", "--config", path); got.stdout != strings.TrimSuffix(packing, "\n")+"\n" {
		t.Errorf("in a pipe the answer is %q", got.stdout)
	}
}

// An answer that is longer than the screen is there once and whole, however often its end
// was drawn.
func TestALongAnswerIsThereOnce(t *testing.T) {
	t.Parallel()
	var answer, want strings.Builder
	for i := range 120 {
		fmt.Fprintf(&answer, "- item %d with *words*\n", i)
		fmt.Fprintf(&want, "• item %d with *words*\n", i)
	}
	path := file(t, model(t, says(answer.String())), atlas(0))
	raw := run{env: []string{"NO_COLOR=1"}}.onTerminal(t, "run", "Which?", "--config", path).ends(exit.Done)
	e := screen.NewEmulator(120, 40, func(string) {})
	e.Write([]byte(raw))
	if got := strings.TrimRight(e.All(), "\n") + "\n"; got != want.String() {
		t.Errorf("the screen is\n%s", got)
	}
}
