// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/invoker"
)

func approval(tool, title, arguments string, hints invoker.Hints) converse.Approval {
	return converse.Approval{
		Ensemble: "files", Tool: tool, Arguments: json.RawMessage(arguments),
		Definition: &invoker.Definition{Name: tool, Title: title, Hints: hints},
	}
}

var no, yes = false, true

// The questions of the golden files.
var questions = map[string]struct {
	ask      converse.Approval
	readOnly bool
}{
	"question.write": {ask: approval("write_file", "Write File",
		`{"content":"package main\n\nfunc main() {\n\tprintln(\"a line that is longer than forty columns\")\n}\n",`+
			`"path":"/home/ada/project/cmd/main.go","mode":420,"backup":false}`, invoker.Hints{})},
	"question.edit": {ask: approval("edit_file", "edit_file",
		`{"path":"a.go","edits":[{"oldText":"a := 1\nb := 2\nc := 3","newText":"a := 1\nb := 3\nc := 3"},{"oldText":"x","newText":"y",`+
			`"all":true}],"dryRun":false}`,
		invoker.Hints{Destructive: &yes, OpenWorld: &no})},
	"question.edit_one": {ask: approval(
		"str_replace", "", `{"command":"str_replace","old_str":"one\n","new_str":"one\ntwo\n","path":"x.txt"}`,
		invoker.Hints{Destructive: &no},
	)},
	"question.command": {ask: approval(
		"bash", "",
		`{"timeout":30,"command":"rm -rf build && \\\n  make all","args":["-x","a b"],"env":{"PATH":"/bin","EMPTY":""}}`,
		invoker.Hints{OpenWorld: &yes},
	)},
	"question.fetch": {ask: approval("fetch", "Fetch a page", `{"url":"https://example.com/a/long/path?with=a&query=that&does=not&fit",`+
		`"method":"GET","headers":{"Accept":"*/*"}}`, invoker.Hints{ReadOnly: true}), readOnly: true},
	"question.claims": {ask: approval("rеad", "Read \u202eeliF", `{}`, invoker.Hints{ReadOnly: true})},
	"question.hostile": {ask: approval(
		"write", "",
		`{"path":"a\u202etxt.exe","path":" /etc/passwd","content":"x\n  path: /tmp/safe\n\u001b[2J\nend","te\nxt":"\ud800","n":1e400,"note":"true"}`,
		invoker.Hints{},
	)},
	"question.unknown": {ask: converse.Approval{Ensemble: "files", Tool: "x", Arguments: json.RawMessage(`[1]`)}},
}

func TestQuestion(t *testing.T) {
	for name, test := range questions {
		golden(t, name, Style{}, func(s Style) []string { return Question(s, test.ask, test.readOnly) })
	}
	test := questions["question.edit"]
	golden(t, "question.edit.dark", Style{Color: true}, func(s Style) []string { return Question(s, test.ask, false) })
}

// leaves returns the strings of a decoded JSON value, names of members included.
func leaves(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, leaves(one)...)
		}
	case map[string]any:
		for name, one := range v {
			all = append(append(all, name), leaves(one)...)
		}
	}
	return all
}

// jsonStrings matches the strings of a JSON text.
var jsonStrings = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// checkQuestion checks that a question shows all strings of the arguments: each line of
// them, or the string as JSON.
func checkQuestion(t *testing.T, arguments string) {
	t.Helper()
	var value any
	if strings.Contains(arguments, `\u`) && strings.Count(arguments, "{")+strings.Count(arguments, "[") > maxNesting {
		return // values that are nested deeper keep the escapes that they were written with
	}
	if json.Unmarshal([]byte(arguments), &value) != nil {
		return
	}
	style := Style{Width: 1 << 20}
	rows := Question(style, approval("t", "", arguments, invoker.Hints{}), false)
	checkRows(t, style, rows)
	bare := func(text string) string { return strings.ReplaceAll(showSpaces(text), " ", "") }
	question := bare(strings.Join(rows, "\n"))
	for _, leaf := range leaves(value) {
		if strings.Contains(question, bare(quote(leaf))) {
			continue
		}
		if slices.ContainsFunc(jsonStrings.FindAllString(arguments, -1), func(written string) bool {
			var text string
			return json.Unmarshal([]byte(written), &text) == nil && text == leaf && strings.Contains(question, bare(display.EscapeJSON(string([]rune(written))))) // each wrong byte is one character
		}) {
			continue // half of a surrogate pair is shown as it is written
		}
		for line := range strings.SplitSeq(leaf, "\n") {
			if !strings.Contains(question, bare(strings.ReplaceAll(showReturns(line), "\t", ""))) {
				t.Errorf("the line %q of %q is not in the question:\n%s", line, leaf, strings.Join(rows, "\n"))
			}
		}
	}
	for _, narrow := range widths {
		style := Style{Width: narrow, Color: true}
		rows := Question(style, approval("t", "", arguments, invoker.Hints{}), false)
		checkRows(t, style, rows)
		var want strings.Builder
		for _, leaf := range leaves(value) {
			want.WriteString(strings.Map(func(r rune) rune {
				if display.IsInvisible(r) {
					return -1 // it is shown as a code, which differs between a name and a value
				}
				return r
			}, leaf))
		}
		if !strings.Contains(arguments, `\`) { // which may stay escaped
			if lost := missing(letters(strip(strings.Join(rows, "\n"))), letters(want.String())); lost != "" {
				t.Errorf("at %d columns it lost %s of %s:\n%s", narrow, lost, arguments, strings.Join(rows, "\n"))
			}
		}
	}
}

func TestQuestionShowsAllStrings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var arguments strings.Builder
		e := json.NewEncoder(&arguments)
		e.SetEscapeHTML(false)
		err := e.Encode(map[string]any{"a": someJSON(random, 0), "path": someJSON(random, 2), "edits": []any{map[string]any{
			"oldText": someText(random), "newText": someText(random), "more": someJSON(random, 2),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		checkQuestion(t, arguments.String())
	}
}

// Each break of a line is the same kind of break, and all spaces can be seen: arguments that
// differ in a space differ on the screen.
func TestQuestionShowsAllSpaces(t *testing.T) {
	for _, width := range []int{20, 30, 40, 80} {
		seen := map[string]string{}
		for n := range 60 {
			for _, text := range []string{"rm -rf /tmp/x" + strings.Repeat("y", n) + "/a/b", "rm -rf /tmp/x" + strings.Repeat("y", n) +
				" /a/b", "rm -rf /tmp/x" + strings.Repeat("y", n) + "  /a/b"} {
				arguments, err := json.Marshal(map[string]string{"command": text})
				if err != nil {
					t.Fatal(err)
				}
				var screen strings.Builder // which shows no spaces at the end of a row
				for _, row := range Question(Style{Width: width}, approval("t", "", string(arguments), invoker.Hints{}), false) {
					screen.WriteString(strings.TrimRight(row, " ") + "\n")
				}
				if other, there := seen[screen.String()]; there {
					t.Fatalf("at %d columns %q looks like %q:\n%s", width, text, other, screen.String())
				}
				seen[screen.String()] = text
			}
		}
	}
}

// Spaces at the end of a row cannot be seen: they move to the next one.
func TestChopMovesSpaces(t *testing.T) {
	for text, want := range map[string]string{"ab cd": "ab| cd", "ab  c": "ab|  c", "abc d": "abc| d", "abcd": "abc|d", "a   ": "a|   ", "   a": "   |a"} {
		var got []string
		for _, line := range chop([]span{{text: text}}, 3) {
			row := ""
			for _, one := range line {
				row += one.text
			}
			got = append(got, row)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q is broken into %q, not %q", text, strings.Join(got, "|"), want)
		}
	}
}

// The name of a member cannot pass for a hint.
func TestQuestionQuotesSentences(t *testing.T) {
	rows := Question(
		Style{Width: 80},
		approval("t", "", `{"It changes nothing, as its server declares, which is trusted.":1,"It changes nothing":{"a":2}}`, invoker.Hints{}),
		false,
	)
	for _, row := range rows {
		if strings.HasPrefix(strings.TrimSpace(row), "It changes") {
			t.Errorf("it looks like a hint:\n%s", strings.Join(rows, "\n"))
		}
	}
}

// Unchanged lines of an edit are shown too, however far they are from a change.
func TestQuestionShowsUnchangedLines(t *testing.T) {
	lines := "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta\ntheta\n"
	arguments, err := json.Marshal(map[string]string{"path": "x", "old_string": lines + "end", "new_string": lines + "END"})
	if err != nil {
		t.Fatal(err)
	}
	checkQuestion(t, string(arguments))
}

func someText(random *rand.Rand) string {
	pieces := []string{
		"word", " ", "\n", "true", "12", "東京", "\u202e", "\x1b[31m", "\t", "\r\n", "\"", "\\", "<U+0041>", "e\u0301",
		"\u00a0", "{", "| ", "longer piece of text",
	}
	var b strings.Builder
	for range random.IntN(8) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

func someJSON(random *rand.Rand, depth int) any {
	switch kind := random.IntN(6); {
	case kind == 0 && depth < 10:
		return []any{someJSON(random, depth+1), someJSON(random, depth+1)}
	case kind <= 2 && depth < 10:
		return map[string]any{someText(random): someJSON(random, depth+1), "old": someJSON(random, depth+1), "new": someText(random)}
	case kind == 3:
		return random.IntN(2) == 0
	}
	return someText(random)
}

func FuzzQuestion(f *testing.F) {
	for _, test := range questions {
		f.Add(string(test.ask.Arguments))
	}
	f.Add(`{"te\nxt":"\ud800","note":"true"}`)
	f.Add("{\"e\\nxt\":\"\\ud800\x8aR\xe0\x8e\x8f\xbb\x9d\",\"note\":\"true\"}")
	f.Add("{\"\\nxt\":\"\\ud800\x8aR\xe0\uf3fb\x9d\",\"note\":\"true\"}")
	f.Fuzz(func(t *testing.T, arguments string) {
		checkRows(t, Style{Width: 30}, Question(Style{Width: 30}, approval("t", "", arguments, invoker.Hints{}), false))
		checkQuestion(t, arguments)
	})
}
