// SPDX-License-Identifier: Apache-2.0

// Package readme has no code, only tests that check the README and the documentation:
// their Go code compiles, their commands run and print the text shown, their links have
// targets, and the map lists every package.
package readme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/raced"
)

var root = filepath.Join("..", "..", "..")

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.Join(path...)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the README's blocks of a language; there is at least one.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	for _, match := range fence.FindAllStringSubmatch(read(t, "README.md"), -1) {
		if match[1] == language {
			found = append(found, match[2])
		}
	}
	if found == nil {
		t.Fatalf("the README has no %s", language)
	}
	return found
}

func TestGoIsThatOfTheExample(t *testing.T) {
	program := read(t, "examples", "embed", "main.go")
	for _, block := range blocks(t, "go") {
		if !strings.Contains(program, "\n"+block) {
			t.Errorf("examples/embed/main.go does not have this:\n%s", block)
		}
	}
}

// The Go code of pages that name the file that it is from is compiled there.
func TestGoOfPagesIsThatOfItsFile(t *testing.T) {
	for name, page := range pages(t) {
		for _, b := range blocksOf(page) {
			file, named := strings.CutPrefix(b.info, "from=")
			if b.language == "text" { // the output of an example
				b.text = regexp.MustCompile("(?m)^(.)").ReplaceAllString(b.text, "\t// $1")
			}
			if named && !strings.Contains(read(t, file), "\n"+b.text) {
				t.Errorf("%s, line %d: %s does not have this", name, b.line, file)
			}
		}
	}
}

// systemd accepts the unit of docs/deploy, and rates it as safe: at most 2 of 10.
func TestUnitIsValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.Executable() // in the place of the command, which has to be there
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "consort.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(read(t, "docs", "deploy", "consort.service"), "/usr/bin/consort", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", unit).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTOMLIsThatOfTheExample(t *testing.T) {
	for _, block := range blocks(t, "toml") {
		if file := read(t, "examples", "fromtoml", "consort.toml"); file != block {
			t.Errorf("examples/fromtoml/consort.toml is\n%s", file)
		}
		settings, err := config.Parse("README.md", []byte(block), &config.Options{Lookup: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		if len(settings.MCP) != 2 {
			t.Errorf("the servers are %v", settings.MCP)
		}
	}
}

// notRun are the README's commands that are not run here, and why.
var notRun = map[string]string{
	"go test ./...": "these tests are a part of it",
}

// The commands are run as a new user would run them, except for the model: it is a script
// that asks for the weather.
func TestCommandsRun(t *testing.T) {
	model, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Text: "OK"}}, // for check
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "atlas__weather", Arguments: `{"city": "Oslo"}`}}}},
		{Expect: openaiserver.Expect{Contains: []string{"snow"}}, Reply: openaiserver.Message{Text: "Snow."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	var printed strings.Builder
	state, home := filepath.Join(t.TempDir(), "state"), raced.Home(t)
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			printed.WriteString(runCommand(t, strings.TrimSpace(line), model.URL(), state, home))
		}
	}
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one of the commands keeps something: %v", err)
	}
	for _, fault := range model.Faults() {
		t.Error(fault)
	}
	for _, block := range blocks(t, "text") {
		if missing := missingLines(block, printed.String()); missing != nil {
			t.Errorf("no command prints\n%s", strings.Join(missing, "\n"))
		}
	}
}

func runCommand(t *testing.T, line, url, state, home string) string {
	t.Helper()
	if reason := notRun[line]; reason != "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the first one compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = root
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(raced.Unraced(), "HOME="+home, "GOENV=", "OPENAI_API_KEY=", "OPENAI_BASE_URL="+url, "XDG_STATE_HOME="+state)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", line, err, &stdout, &stderr)
	} else if stdout.Len() == 0 {
		t.Errorf("%s printed nothing", line)
	}
	return stdout.String()
}

// Each script of the project can be executed and is one that bash or node reads.
func TestScripts(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, ".ci"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		path := filepath.Join(root, ".ci", entry.Name())
		if info, err := os.Stat(path); err != nil {
			t.Error(err)
		} else if info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := []string{"bash", "-n", path}
		if first, _, _ := strings.Cut(string(text), "\n"); strings.HasSuffix(first, " node") {
			check = []string{"node", "--check", path}
			if _, err := exec.LookPath("node"); err != nil {
				continue // the tests that need it say so
			}
		}
		if out, err := exec.CommandContext(t.Context(), check[0], check[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}

var duration = regexp.MustCompile(`\d+\.\d+s`)

// missingLines returns the lines that are not printed; how long things take,
// and which of several ends first, differs from run to run.
func missingLines(want, printed string) (missing []string) {
	lines := strings.Split(duration.ReplaceAllString(printed, "-"), "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimSuffix(line, "\n")
		if !slices.Contains(lines, duration.ReplaceAllString(line, "-")) {
			missing = append(missing, line)
		}
	}
	return missing
}

// listed is the output of go list for a package.
type listed struct{ ImportPath, Doc string }

func packages(t *testing.T) (found []listed) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
}

var (
	subject = regexp.MustCompile(`^(Package \w+|Consort|Faultserverd) `)
	docLink = regexp.MustCompile(`\[([\w.]+)\]`)
)

// Each public package stands in docs/packages.md with the first sentence of its own
// documentation, and the README mentions each example.
func TestMapHasEveryPackage(t *testing.T) {
	text, table := read(t, "README.md"), read(t, "docs", "packages.md")
	rows := 0
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, "github.com/consort-go/consort/")
		switch top, below, _ := strings.Cut(path, "/"); {
		case top == "internal" || strings.Contains(below, "internal/") || path == "examples":
		case top == "examples":
			if !strings.Contains(text, "[examples/"+below+"](") && !strings.Contains(text, "["+below+"](examples/"+below) {
				t.Errorf("the README does not mention %s", path)
			}
		default:
			rows++
			synopsis := strings.TrimSuffix(docLink.ReplaceAllString(subject.ReplaceAllString(p.Doc, ""), "$1"), ".")
			if row := "\n| [" + path + "](../" + path + ") | " + synopsis + " |\n"; !strings.Contains(table, row) {
				t.Errorf("docs/packages.md lacks the row%s", row)
			}
		}
	}
	if found := len(regexp.MustCompile(`(?m)^\| \[`).FindAllString(table, -1)); found != rows {
		t.Errorf("docs/packages.md has %d rows; there are %d packages", found, rows)
	}
}
