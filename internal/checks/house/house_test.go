// SPDX-License-Identifier: Apache-2.0

// Package house has no code, only the tests that keep the rules of the house:
// which package may import which, and what every file carries.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/consort-go/consort"

// listed is the output of go list for a package.
type listed struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Standard,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = filepath.Join("..", "..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// local returns the path of a package within the module, or "".
func local(path string) string {
	if path == module {
		return "."
	}
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// within reports whether a package is at or below one of the given places.
func within(path string, places ...string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		return path == place || strings.HasPrefix(path, place+"/")
	})
}

// mayImport lists, for each room of the house, the rooms that its shipped code
// may import. Rooms that are not listed may import anything but config.
var mayImport = map[string][]string{
	"canister":                     {},
	"invoker":                      {"canister", "internal"},
	"invoker/audit":                {"canister", "invoker", "internal"},
	"invoker/telemetry":            {"canister", "invoker", "internal"},
	"ensemble":                     {"canister", "invoker", "internal"},
	"ensemble/ensembletest":        {"canister", "invoker", "ensemble"},
	"ensemble/pins":                {"invoker", "internal"},
	"converse":                     {"canister", "invoker", "ensemble", "converse/history", "converse/budget", "converse/internal", "internal"},
	"converse/agenttool":           {"canister", "invoker", "converse", "internal"},
	"converse/approve":             {"converse", "internal/approvals", "internal/paste"},
	"converse/eventjson":           {"canister", "invoker", "ensemble", "converse", "internal"},
	"converse/conversetest":        {"canister", "invoker", "ensemble", "converse", "internal"},
	"converse/budget/budgettest":   {"canister", "converse/budget", "internal"},
	"converse/engine/enginetest":   {"canister", "invoker", "ensemble", "converse", "internal"},
	"converse/httpapi":             {"canister", "invoker", "converse", "internal"},
	"converse/history/historytest": {"canister", "invoker", "ensemble", "converse", "internal"},
	"converse/engine":              {"canister", "invoker", "converse", "converse/eventjson", "converse/history", "internal"},
	"converse/budget":              {"canister", "internal/textcut"},
	"converse/history":             {"canister"},
	"converse/history/files":       {"canister", "converse/history", "converse/budget", "internal"},
	"converse/history/sqlite":      {"canister", "converse/history", "converse/budget", "internal/records"},
	"converse/history/postgres":    {"canister", "converse/history", "converse/budget", "internal/records"},
	"converse/openaimodel":         {"canister", "invoker", "ensemble", "converse", "internal"},
	"converse/anthropicmodel":      {"canister", "invoker", "converse", "internal"},
	"converse/internal/modelapi":   {"canister", "invoker", "converse", "internal"},
	"mcpadapter":                   {"canister", "invoker", "ensemble", "mcpadapter/internal", "internal"},
	"mcpadapter/internal/decode":   {"canister", "invoker", "ensemble", "mcpadapter/internal", "internal"},
	"mcpadapter/internal/wire":     {"invoker", "internal"},
	"mcpadapter/server":            {"canister", "invoker", "ensemble", "mcpadapter", "internal"},
	"mcpadapter/server/oidc":       {"invoker", "mcpadapter/server", "internal"},
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range list(t, "./...") {
		from := local(p.ImportPath)
		for _, imported := range p.Imports {
			to := local(imported)
			if to == "" {
				continue
			}
			if allowed, ok := mayImport[from]; ok && !within(to, allowed...) {
				t.Errorf("%s imports %s; it may import only %q", from, to, allowed)
			}
			if within(to, "config") && !within(from, "internal/chatcommands", "internal/command", "internal/configfile", "internal/gateway",
				"internal/histories", "internal/reports", "examples", "config") {
				t.Errorf("%s imports %s, which only the packages of the command and examples do", from, to)
			}
		}
	}
}

// doorways are the packages through which alone a vendor's module comes in.
var doorways = map[string][]string{
	"github.com/openai/openai-go":            {"converse/openaimodel"},
	"github.com/anthropics/anthropic-sdk-go": {"converse/anthropicmodel"},
	"github.com/modelcontextprotocol/go-sdk": {"mcpadapter"},
	"github.com/pelletier/go-toml":           {"config"},
	"github.com/coreos/go-oidc":              {"mcpadapter/server/oidc"},
	"github.com/go-jose/go-jose":             {"mcpadapter/server/oidc"},
	"github.com/hashicorp/go-bexpr":          {"internal/condition"},
	"google.golang.org/grpc":                 {"mcpadapter/grpctool"},
	"google.golang.org/protobuf":             {"mcpadapter/grpctool"},
	"google.golang.org/genproto":             {"mcpadapter/grpctool"},
	"github.com/google/jsonschema-go":        {"invoker"},
	"github.com/santhosh-tekuri/jsonschema":  {"invoker"},
	"github.com/spf13/cobra":                 {"internal/command"},
	"github.com/zalando/go-keyring":          {"internal/keyring"},
	"go.opentelemetry.io":                    {"invoker/telemetry"},
	"github.com/prometheus":                  {"internal/otelsetup"},
	"github.com/jackc/pgx":                   {"converse/history/postgres"},
	"modernc.org/sqlite":                     {"converse/history/sqlite", "examples/tasks/taskbook"},
}

func TestEachVendorHasOneDoorway(t *testing.T) {
	for _, p := range list(t, "./...") {
		from := local(p.ImportPath)
		for _, imported := range p.Imports {
			for vendor, doors := range doorways {
				if within(imported, vendor) || strings.HasPrefix(imported, vendor+"/v") {
					if !within(from, doors...) && !within(from, "internal", "examples") {
						t.Errorf("%s imports %s, which only %q may", from, imported, doors)
					}
				}
			}
		}
	}
}

func TestCanisterStandsOnTheStandardLibrary(t *testing.T) {
	for _, p := range list(t, "-deps", "./canister") {
		if !p.Standard && local(p.ImportPath) != "canister" {
			t.Errorf("canister depends on %s", p.ImportPath)
		}
	}
}

// A program that imports only converse and ensemble is light: of OpenTelemetry
// it has the API.
func TestTheCoreIsLight(t *testing.T) {
	heavy := []string{
		"github.com/openai/openai-go", "github.com/modelcontextprotocol/go-sdk", "github.com/pelletier/go-toml",
		"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto", "database/sql", "modernc.org", "github.com/jackc",
		"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/otel/log",
		"go.opentelemetry.io/proto", "go.opentelemetry.io/contrib", "go.opentelemetry.io/auto", "github.com/prometheus",
	}
	api := false
	for _, p := range list(t, "-deps", "./converse", "./ensemble") {
		for _, vendor := range heavy {
			if within(p.ImportPath, vendor) {
				t.Errorf("converse and ensemble link %s", p.ImportPath)
			}
		}
		api = api || p.ImportPath == "go.opentelemetry.io/otel/trace"
	}
	if !api {
		t.Error("the list lacks what converse and ensemble do link")
	}
}

// What draws on a terminal, or makes documents for people, is linked by the command only:
// programs that import the public packages link neither these packages nor the modules that
// they need.
func TestOnlyTheCommandDraws(t *testing.T) {
	drawing := []string{
		"charm.land", "github.com/charmbracelet", "github.com/alecthomas/chroma", "github.com/clipperhouse",
		"github.com/yuin/goldmark", "github.com/microcosm-cc",
		module + "/internal/rendering", module + "/internal/readable", module + "/internal/chatui",
	}
	var public []string
	for _, p := range list(t, "./...") {
		if !within(local(p.ImportPath), "cmd", "examples", "internal") {
			public = append(public, p.ImportPath)
		}
	}
	for _, p := range list(t, append([]string{"-deps"}, public...)...) {
		if within(p.ImportPath, drawing...) {
			t.Errorf("a public package links %s", p.ImportPath)
		}
	}
	linked := list(t, "-deps", "./internal/rendering", "./internal/readable")
	for _, name := range []string{"github.com/yuin/goldmark", "github.com/microcosm-cc"} {
		if !slices.ContainsFunc(linked, func(p listed) bool { return within(p.ImportPath, name) }) {
			t.Errorf("the packages do not link %s; is it still its name?", name)
		}
	}
}

func TestTopLevel(t *testing.T) {
	want := []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "canister", "cmd", "config", "converse", "docs", "ensemble",
		"examples", "go.mod", "go.sum", "internal", "invoker", "mcpadapter",
	}
	entries, err := os.ReadDir(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(want, name) {
			t.Errorf("%s has no place at the top level", name)
		}
	}
}

// pkg.go.dev shows the documentation of a module only if its licence stands at
// the module's root; see https://pkg.go.dev/license-policy.
func TestEachModuleHasItsLicence(t *testing.T) {
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "LICENSE"))
		if err != nil {
			t.Errorf("the module of %s has no licence: %v", path, err)
		} else if !bytes.Contains(text, []byte("Apache License")) || !bytes.Contains(text, []byte("END OF TERMS AND CONDITIONS")) {
			t.Errorf("the LICENSE of the module of %s is not the whole text of the Apache License", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryFileNamesItsLicence(t *testing.T) {
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(text[:min(len(text), 300)], []byte("SPDX-License-Identifier: Apache-2.0")) {
			t.Errorf("%s does not name its licence", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
