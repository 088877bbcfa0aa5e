// SPDX-License-Identifier: Apache-2.0

// Command platforms type-checks packages of the module and their tests for other operating
// systems. Unlike go vet, it compiles nothing:
//
//	go run ./internal/checks/platforms darwin,windows ./cmd/consort ./mcpadapter/...
//
// It prints each error with its position, and exits with 1 if there is one.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: platforms SYSTEM[,SYSTEM…] PACKAGE…")
		os.Exit(2)
	}
	failed := false
	for system := range strings.SplitSeq(os.Args[1], ",") {
		problems, checked, err := check(system, os.Args[2:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			os.Exit(1)
		}
		for _, problem := range problems {
			fmt.Printf("%s: %v\n", system, problem)
		}
		failed = failed || len(problems) > 0
		fmt.Printf("%s: %d packages of the module were checked, tests among them\n", system, checked)
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list describes it. The tests of a package make another one,
// with the same path and their own in brackets.
type listed struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	ImportMap             map[string]string // other paths of imports
	Module                *struct{ Main bool }
	Error                 *struct{ Err string }
}

// check returns what is wrong with packages of the module on a system, and how many it
// checked.
func check(system string, patterns []string) (problems []error, checked int, err error) {
	list := exec.Command("go", append([]string{"list", "-e", "-deps", "-test", "-json=ImportPath,Dir,Name,GoFiles,ImportMap,Module,Error"}, patterns...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, 0, err
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	files := token.NewFileSet()
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; { // what a package imports comes before it
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return problems, checked, nil
		} else if err != nil {
			return nil, 0, err
		}
		if p.ImportPath == "unsafe" || p.Name == "main" && strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		own := p.Module != nil && p.Module.Main
		of, found := p.check(files, done, own)
		done[p.ImportPath] = of
		if own {
			problems = append(problems, found...)
			checked++
		}
	}
}

// check type-checks one package. It looks into functions if inside is true.
func (p *listed) check(files *token.FileSet, done map[string]*types.Package, inside bool) (of *types.Package, problems []error) {
	note := func(err error) { problems = append(problems, err) }
	if p.Error != nil {
		note(errors.New(p.Error.Err))
	}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			note(err)
		}
		if file != nil {
			parsed = append(parsed, file)
		}
	}
	config := types.Config{Error: note, IgnoreFuncBodies: !inside, Importer: importerFunc(func(path string) (*types.Package, error) {
		if other, ok := p.ImportMap[path]; ok {
			path = other
		}
		if of := done[path]; of != nil {
			return of, nil
		}
		return nil, fmt.Errorf("the package %s was not listed", path)
	})}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	of, _ = config.Check(path, files, parsed, nil) // its first error has gone to note
	return of, problems
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
