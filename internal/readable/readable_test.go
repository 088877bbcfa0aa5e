// SPDX-License-Identifier: Apache-2.0

package readable_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/readable"
)

var update = flag.Bool("update", false, "write the golden files")

// zone is not that of the machine.
var zone = time.FixedZone("CET", 3600)

var began = time.Date(2026, 11, 22, 11, 16, 1, 0, time.UTC)

// clocked gives each canister of a conversation an ID and a time.
func clocked(canisters ...canister.Canister) []canister.Canister {
	for i, c := range canisters {
		head := c.Header()
		head.Time = began.Add(time.Duration(i) * 250 * time.Millisecond)
		canisters[i] = canister.WithHead(c, head)
	}
	return canisters
}

func id(name string) canister.Head { return canister.Head{ID: name} }

// pixel is a PNG image of one pixel.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82")

const answer = `# Weather

It **snows** in Oslo:

| when | °C |
|------|---:|
| now  | -3 |

- [x] coat
- [ ] hat

` + "```python\nprint(\"# no heading\")\n```\n" + `
See [yr](https://www.yr.no/) and <b>dress</b> warmly.
`

// talk has everything that an export shows.
func talk() []canister.Canister {
	return clocked(
		canister.Supervisor{Head: id("s"), Content: canister.Texts("Be brief.")},
		canister.User{Head: id("u"), Content: []canister.Content{
			canister.Text("What should I wear\nin *Oslo*?"), canister.ImageContent{MIME: "image/png", Data: pixel},
		}},
		canister.Assistant{Head: id("a"), Model: "gpt-5-mini", Finish: canister.FinishInvocations},
		canister.Invocation{Head: id("i"), Message: "a", CallID: "1", Name: "atlas__weather", Arguments: `{"city":"Oslo"}`},
		canister.Invocation{Head: id("j"), Message: "a", CallID: "2", Name: "atlas__rm", Arguments: `{"path":"/"}`},
		canister.Wait{Head: id("w"), For: canister.WaitApproval, Invocation: "j", Deadline: began.Add(time.Hour)},
		canister.Intent{Head: id("n"), Invocation: "i", Attempt: 1, Key: "k"},
		canister.Result{Head: id("r"), Invocation: "i", Content: canister.Texts("snow\n-3 °C")},
		canister.Answer{Head: id("y"), Wait: "w", Verdict: canister.VerdictDeny, By: "ann", Reason: "never"},
		canister.Result{Head: id("q"), Invocation: "j", Code: "DENIED", Content: canister.Texts("The call was denied: never")},
		canister.Document{Head: id("d"), Title: "Almanac", URI: "file:///almanac", Content: canister.Texts("Snow in *February*.")},
		canister.Assistant{Head: id("b"), Model: "gpt-5-mini", Finish: canister.FinishLength, Content: canister.Texts(answer)},
	)
}

// program is a search, and a program that made calls; one of them failed.
func program() []canister.Canister {
	return clocked(
		canister.User{Head: id("u"), Content: canister.Texts("Who wrote these files?")},
		canister.Assistant{Head: id("a"), Model: "gpt-5-mini", Finish: canister.FinishInvocations},
		canister.Invocation{Head: id("f"), Message: "a", CallID: "1", Name: "tools__find_tools", Arguments: `{"query":"file author"}`},
		canister.Result{Head: id("g"), Invocation: "f", Content: canister.Texts(
			`{"name":"git__blame","description":"</details><script>","input_schema":{}}` + "\n" + `{"name":"git__log","input_schema":{}}` + "\n")},
		canister.Assistant{Head: id("b"), Model: "gpt-5-mini", Finish: canister.FinishInvocations},
		canister.Invocation{Head: id("p"), Message: "b", CallID: "2", Name: "code__run_code", Arguments: `{"program":"return gather(blame, [\"a\", \"b\"])"}`},
		canister.Intent{Head: id("n"), Invocation: "p", Attempt: 1, Key: "k"},
		canister.Invocation{Head: id("i"), Message: "b", Parent: "p", CallID: "1.1.1", Name: "git__blame", Arguments: `{"path":"a"}`},
		canister.Invocation{Head: id("j"), Message: "b", Parent: "p", CallID: "1.2.1", Name: "git__blame", Arguments: `{"path":"</summary><b>"}`},
		canister.Result{Head: id("r"), Invocation: "i", Parent: "p", Content: canister.Texts("ann\n```\n</details>")},
		canister.Result{Head: id("q"), Invocation: "j", Parent: "p", Code: "NOT_FOUND", Content: canister.Texts("There is no such file.")},
		canister.Result{Head: id("o"), Invocation: "p", Content: canister.Texts("ann")},
		canister.Assistant{Head: id("c"), Model: "gpt-5-mini", Content: canister.Texts("Ann did.")},
	)
}

// stored returns a store with one conversation.
func stored(t testing.TB, canisters ...canister.Canister) history.Store {
	t.Helper()
	store := history.NewMemory()
	if err := store.Append(t.Context(), "talk", 0, canisters...); err != nil {
		t.Fatal(err)
	}
	return store
}

func exported(t testing.TB, format readable.Format, full bool, canisters ...canister.Canister) string {
	t.Helper()
	var b strings.Builder
	err := readable.Export(t.Context(), &b, stored(t, canisters...), format, readable.Options{Zone: zone, Full: full}, "talk")
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden compares the documents with files. Times of the store are removed.
func TestGolden(t *testing.T) {
	for name, text := range map[string]string{
		"talk.md":      exported(t, readable.Markdown, false, talk()...),
		"talk.html":    exported(t, readable.HTML, false, talk()...),
		"talk.full.md": exported(t, readable.Markdown, true, talk()...),
		"program.md":   exported(t, readable.Markdown, false, program()...),
		"program.html": exported(t, readable.HTML, false, program()...),
	} {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.Contains(line, "created ") })
		got, path := strings.Join(lines, "\n"), filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s has changed; it is\n%s", name, got)
		}
	}
}

// TestSecretsAreRemovedBeforeTheyAreRendered: markup could divide a secret.
func TestSecretsAreRemovedBeforeTheyAreRendered(t *testing.T) {
	redact := func(text string) string { return strings.ReplaceAll(text, "a*b*<c>", "[secret]") }
	said := canister.User{Head: id("u"), Content: canister.Texts("It is a*b*<c>.")}
	for _, format := range []readable.Format{readable.Markdown, readable.HTML} {
		var b strings.Builder
		if err := readable.Export(t.Context(), &b, stored(t, said), format, readable.Options{Redact: redact}, "talk"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "It is [secret].") || strings.Contains(b.String(), "&lt;c&gt;") || strings.Contains(b.String(), "<em>b") {
			t.Errorf("%s:\n%s", format, b.String())
		}
	}
}

// TestExportSaysWhatItCannot: an unknown format, an unknown conversation, and a writer that
// fails.
func TestExportSaysWhatItCannot(t *testing.T) {
	store := stored(t, talk()...)
	export := func(ctx context.Context, format readable.Format, ids ...string) error {
		return readable.Export(ctx, &bytes.Buffer{}, store, format, readable.Options{}, ids...)
	}
	if err := export(t.Context(), "pdf", "talk"); err == nil || !strings.Contains(err.Error(), "markdown or html") {
		t.Errorf("%v", err)
	}
	if err := export(t.Context(), readable.HTML, "none"); !errors.Is(err, history.ErrNotFound) || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("%v", err)
	}
	full := errors.New("the disk is full")
	if err := readable.Export(t.Context(), failing{full}, store, readable.HTML, readable.Options{}, "talk"); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := export(ended, readable.Markdown, "talk"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
