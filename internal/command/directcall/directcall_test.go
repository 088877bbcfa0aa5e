// SPDX-License-Identifier: Apache-2.0

package directcall

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

func TestArguments(t *testing.T) {
	for text, want := range map[string]string{
		`{"city": "Oslo"}`: "",
		"{}":               "",
		"null":             "it is null",
		"[]":               "a different kind of JSON value",
		`{"city": `:        "at byte 9",
	} {
		arguments, err := Arguments(text, "standard input")
		switch {
		case want == "" && (err != nil || string(arguments) != text):
			t.Errorf("%s: %s, %v", text, arguments, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "standard input: ") || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A tool is called by its own name or by the one in the roster; other names are usage
// errors with advice.
func TestInvoke(t *testing.T) {
	local := ensemble.Local("files", ensembletest.Returns("read", "text"))
	roster, err := ensemble.NewRoster(local)
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.WithoutCancel(t.Context()))
	e, err := Ensemble(roster, "files", "consort.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read", "files__read"} {
		output, err := Invoke(t.Context(), e, name, &invoker.Call{ID: "1"}, nil)
		if err != nil || len(output.Content) != 1 {
			t.Errorf("%s: %v, %v", name, output, err)
		}
	}
	if _, err := Invoke(t.Context(), e, "raed", &invoker.Call{ID: "1"}, nil); exit.StatusOf(err) != exit.Usage ||
		!strings.Contains(err.Error(), "did you mean read?") {
		t.Error(err)
	}
	if _, err := Ensemble(roster, "fiels", "consort.toml"); exit.StatusOf(err) != exit.Usage || !strings.Contains(err.Error(), "consort.toml has files") {
		t.Error(err)
	}
}

func TestPrint(t *testing.T) {
	failure := invoker.Failf(invoker.NotFound, "there is no task 3")
	for _, test := range []struct {
		inJSON  bool
		err     error
		status  exit.Status
		printed string
	}{
		{false, nil, exit.Done, "done\n"},
		{true, nil, exit.Done, `"text":"done"`},
		{false, failure, exit.Tool, ""},
		{true, failure, exit.Tool, `"code":"NOT_FOUND"`},
		{true, exit.Usagef("there is no tool"), exit.Usage, ""},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		err = Print(terminal.NewScreen(out, out), test.inJSON, &invoker.Call{ID: "1"}, invoker.Output{Content: canister.Texts("done")}, test.err)
		printed, readErr := os.ReadFile(out.Name())
		if err := errors.Join(readErr, out.Close()); err != nil {
			t.Fatal(err)
		}
		if exit.StatusOf(err) != test.status || !strings.Contains(string(printed), test.printed) || test.printed == "" && len(printed) > 0 {
			t.Errorf("%+v: %v, printed %q", test, err, printed)
		}
	}
}
