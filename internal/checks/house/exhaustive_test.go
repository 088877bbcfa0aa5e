// SPDX-License-Identifier: Apache-2.0

package house

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// closed are the interfaces that only types of their own package implement.
var closed = []string{
	module + "/canister.Canister",
	module + "/canister.Content",
	module + "/converse.Command",
	module + "/converse.Event",
	module + "/converse/engine.Event",
}

// A type switch over a closed set has a case for each member, or a default. A switch
// with cases for no more than half of the members selects some kinds, and needs
// neither, except over Content: what is forgotten there is dropped silently.
func TestSwitchesOverClosedSetsAreExhaustive(t *testing.T) {
	exports, packages := compiled(t)
	read := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	checked := make(map[string]bool)
	files := token.NewFileSet()
	settings := &types.Config{Importer: importer.ForCompiler(files, "gc", read)} // reads each package once
	for _, p := range packages {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
		if _, err := settings.Check(p.ImportPath, files, parsed, info); err != nil {
			t.Fatal(err)
		}
		for _, file := range parsed {
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSwitchStmt); ok {
					set, missing := missingCases(info, s)
					if len(missing) > 0 {
						t.Errorf("%s: the switch over %s has no default, and no case for %s", files.Position(s.Pos()), set, strings.Join(missing, ", "))
					}
					checked[set] = true
				}
				return true
			})
		}
	}
	for _, set := range closed {
		if !checked[set] {
			t.Errorf("no switch over %s was checked; is it still the name of the set?", set)
		}
	}
}

// source is a package whose switches are checked.
type source struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

// compiled returns the files with the types of all packages that this module uses, and
// those packages of the module that may have a switch over a closed set.
func compiled(t *testing.T) (exports map[string]string, packages []source) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..", "..")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	exports = make(map[string]string)
	for decoder := json.NewDecoder(out); err == nil; {
		var p source
		if err = decoder.Decode(&p); err != nil {
			break
		}
		exports[p.ImportPath] = p.Export
		uses := func(set string) bool {
			path := set[:strings.LastIndexByte(set, '.')]
			return p.ImportPath == path || slices.Contains(p.Imports, path)
		}
		if local(p.ImportPath) != "" && slices.ContainsFunc(closed, uses) {
			packages = append(packages, p)
		}
	}
	if ended := cmd.Wait(); !errors.Is(err, io.EOF) || ended != nil {
		t.Fatalf("go list: %v, %v", err, ended)
	}
	return exports, packages
}

// missingCases returns the closed set of a switch, "" for any other type, and its
// members without a case.
func missingCases(info *types.Info, s *ast.TypeSwitchStmt) (set string, missing []string) {
	var subject ast.Expr
	ast.Inspect(s.Assign, func(n ast.Node) bool {
		if a, ok := n.(*ast.TypeAssertExpr); ok && subject == nil {
			subject = a.X
		}
		return true
	})
	named, ok := types.Unalias(info.TypeOf(subject)).(*types.Named)
	if !ok || !slices.Contains(closed, named.String()) {
		return "", nil
	}
	var cases []types.Type
	for _, clause := range s.Body.List {
		list := clause.(*ast.CaseClause).List
		if list == nil {
			return named.String(), nil // a default
		}
		for _, e := range list {
			cases = append(cases, info.TypeOf(e))
		}
	}
	scope, members := named.Obj().Pkg().Scope(), 0
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || types.IsInterface(object.Type()) {
			continue
		}
		set := named.Underlying().(*types.Interface)
		covered := func(c types.Type) bool { return types.AssignableTo(object.Type(), c) }
		if !types.Implements(object.Type(), set) {
			continue
		}
		members++
		if !slices.ContainsFunc(cases, covered) {
			missing = append(missing, name)
		}
	}
	if named.Obj().Name() != "Content" && len(missing) >= members-len(missing) {
		return named.String(), nil
	}
	return named.String(), missing
}
