// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the program prints into README.md")

// times are all that differs from run to run.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// README.md shows the output of the program, except for the times of day.
func TestTheConversationsInREADME(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	page := readme(t)
	const begin, end = "```text\n", "```\n"
	before, rest, ok := strings.Cut(page, begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("README.md shows nothing")
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(before+begin+out.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if mask := times.ReplaceAllString; mask(out.String(), "TIME") != mask(shown, "TIME") {
		t.Errorf("the program prints something else than README.md (go test ./examples/tasks -update):\n%s", &out)
	}
}

// Each test that README.md names is there.
func TestREADMENamesTests(t *testing.T) {
	var tests []byte
	for _, pattern := range []string{"*_test.go", "taskbook/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, text...)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(readme(t), -1)
	if len(named) < 20 {
		t.Errorf("it names %d tests", len(named))
	}
	for _, name := range named {
		if !bytes.Contains(tests, []byte("func "+name[1]+"(")) {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestNothingIsLeft: the folder goes, also when the program is interrupted.
func TestNothingIsLeft(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("TMP", folder)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := play(ended, io.Discard); err == nil {
		t.Error("it ran though it was interrupted")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}
