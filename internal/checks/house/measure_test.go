// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// measures are the numbers of one package that must not grow.
type measures struct {
	// Exported counts the exported constants, variables, functions and types; the
	// methods of types are not counted.
	Exported int
	// Code counts the lines with code; comments, blank lines and tests do not count.
	Code int
	// Methods counts the methods of the type that has most.
	Methods int
	// Embedded counts the struct fields that embed a pointer to a struct of the
	// package that is not exported.
	Embedded int
	// Idioms counts the odd idioms of the comments; see idioms.
	Idioms int

	words   int // of the comments
	largest string
	wide    int // lines of tests over maxColumns columns
}

// maxColumns is how long a line of a test may be.
const maxColumns = 160

// idioms are patterns of English that readers stumble over. Each is right now and
// then; many of them make a text hard to read.
var idioms = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[.;:] )(?:Who|Whoever|To whom|Of whom)\b`),
	regexp.MustCompile(`\bwhat (?:is|was|has|had|they|it|a|the|no|comes|came|follows|stands|becomes|became|of)\b`),
	regexp.MustCompile(`\b(?:of|in|to|for|by|from|with|at|on|behind|under|over) (?:which|whom)\b|\bwhom\b`),
	regexp.MustCompile(`\b(?:is|are|was|were) (?:no|none)\b|\bthat is none\b`),
	regexp.MustCompile(`\b(?:somebody|nobody|anybody)\b`),
	regexp.MustCompile(`\b(?:in place of|beside|behind|for want of)\b`),
	regexp.MustCompile(`\bbut for\b`),
	regexp.MustCompile(`\b(?:those of|that of|those that|those who)\b`),
	regexp.MustCompile(`\b(?:any more|for ever|once more|at hand|by hand)\b`),
}

// measure returns the measures of each package of this module, by its path within
// the module.
func measure(t *testing.T) map[string]*measures {
	t.Helper()
	all := make(map[string]*measures)
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(path, root)
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if all[folder] == nil {
			all[folder] = &measures{}
		}
		if strings.HasSuffix(path, "_test.go") {
			all[folder].test(text)
			return nil
		}
		return all[folder].add(path, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, m := range all {
		m.largest, m.Methods = mostMethods(t, folder)
	}
	return all
}

// skip leaves out folders without code of this module.
func skip(path, root string) error {
	name := filepath.Base(path)
	if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
		return filepath.SkipDir
	}
	return nil
}

// test counts the long lines of a test.
func (m *measures) test(text []byte) {
	for line := range strings.Lines(string(text)) {
		columns := len([]rune(strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\n")))
		if columns > maxColumns {
			m.wide++
		}
	}
}

// add counts one file.
func (m *measures) add(path string, text []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.Code += codeLines(text)
	m.comments(file)
	if file.Name.Name != "main" {
		for _, d := range file.Decls {
			m.Exported += exported(d)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			m.Embedded += embedded(s)
		}
		return true
	})
	return nil
}

// comments counts the idioms of the comments of a file.
func (m *measures) comments(file *ast.File) {
	var all []string
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if text, ok := strings.CutPrefix(comment.Text, "//"); ok {
				all = append(all, strings.TrimSpace(text))
			}
		}
	}
	text := strings.Join(all, " ")
	m.words += len(strings.Fields(text))
	for _, idiom := range idioms {
		m.Idioms += len(idiom.FindAllStringIndex(text, -1))
	}
}

// codeLines counts the lines of a file on which a token begins or ends.
func codeLines(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := make(map[int]bool)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := range 1 + bytes.Count([]byte(literal), []byte("\n")) {
			lines[first+i] = true
		}
	}
}

// exported counts the exported names that a declaration declares in its package.
func exported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			n++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}

// embedded counts the fields that embed a pointer to an unexported struct of the
// package.
func embedded(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		star, ok := field.Type.(*ast.StarExpr)
		if !ok || len(field.Names) > 0 {
			continue
		}
		if name, ok := star.X.(*ast.Ident); ok && !name.IsExported() {
			n++
		}
	}
	return n
}

// mostMethods returns the type with most methods of each package, and how many.
func mostMethods(t *testing.T, folder string) (largest string, n int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("..", "..", "..", folder))
	if err != nil {
		t.Fatal(err)
	}
	methods := make(map[string]int)
	files := token.NewFileSet()
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, filepath.Join("..", "..", "..", folder, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				name := receiver(f.Recv.List[0].Type)
				if methods[name]++; methods[name] > n {
					largest, n = name, methods[name]
				}
			}
		}
	}
	return largest, n
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
