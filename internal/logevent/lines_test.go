// SPDX-License-Identifier: Apache-2.0

package logevent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/consort-go/consort"
	page   = "docs/observability/logs.md"
)

// line is a place in the code that writes to a log.
type line struct {
	at     string
	event  string   // the variable of package event
	level  string   // empty if it depends
	fields []string // written literally
	more   bool     // there are others
}

// forwarders hand on the lines of others.
var forwarders = []string{module + "/internal/logevent", module + "/internal/redact"}

// levels are the levels of the logger's methods.
var levels = map[string]string{"Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error", "DPanic": "", "Panic": "", "Fatal": "", "Log": ""}

// reader collects the log lines of packages, and errors about them.
type reader struct {
	files *token.FileSet
	info  *types.Info
	lines []line
	wrong []string
}

func (r *reader) complain(at ast.Node, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf("%s: %s", r.place(at), fmt.Sprintf(format, args...)))
}

func (r *reader) place(at ast.Node) string {
	position := r.files.Position(at.Pos())
	return fmt.Sprintf("%s:%d", filepath.Base(filepath.Dir(position.Filename))+"/"+filepath.Base(position.Filename), position.Line)
}

// visit looks at a call.
func (r *reader) visit(call *ast.CallExpr) {
	f := r.calleeOf(call)
	if f == nil {
		return
	}
	switch name := f.FullName(); {
	case name == module+"/internal/logevent.Log":
		r.constant(call.Args[3])
		r.written(call, r.levelOf(call.Args[2]), call.Args[4:])
	case name == "(*go.uber.org/zap.Logger).Check":
		r.constant(call.Args[1]) // and then Write
	case name == "(*go.uber.org/zap/zapcore.CheckedEntry).Write":
		r.written(call, "", call.Args)
	case name == "(*go.uber.org/zap.Logger).Sugar", strings.HasPrefix(name, "(*go.uber.org/zap.SugaredLogger)."):
		r.complain(call, "a line without fields of their own types")
	case strings.HasPrefix(name, "(*go.uber.org/zap.Logger)."):
		level, writes := levels[f.Name()]
		args := call.Args
		if f.Name() == "Log" {
			level, args = r.levelOf(args[0]), args[1:]
		}
		if writes {
			r.constant(args[0])
			r.written(call, level, args[1:])
		}
	}
}

// visitList looks at a list of fields: one that begins with an event is a line
// for the core of a log.
func (r *reader) visitList(list *ast.CompositeLit) {
	if len(list.Elts) > 0 {
		if of, ok := list.Elts[0].(*ast.SelectorExpr); ok && isEvent(r.info.Uses[of.Sel]) {
			r.written(list, "", list.Elts)
		}
	}
}

// constant sees to it that lines can be sampled by their messages.
func (r *reader) constant(message ast.Expr) {
	if value := r.info.Types[message].Value; value == nil || value.Kind() != constant.String {
		r.complain(message, "the message is not constant")
	}
}

// levelOf returns a level that is written out.
func (r *reader) levelOf(level ast.Expr) string {
	if of, ok := level.(*ast.SelectorExpr); ok {
		if name, ok := strings.CutSuffix(of.Sel.Name, "Level"); ok {
			return levels[name]
		}
	}
	return ""
}

// written notes a line with the fields.
func (r *reader) written(at ast.Node, level string, fields []ast.Expr) {
	l := line{at: r.place(at), level: level}
	for _, field := range appended(fields) {
		of, ok := field.(*ast.SelectorExpr)
		name := r.fieldName(field)
		switch {
		case ok && isEvent(r.info.Uses[of.Sel]):
			l.event = of.Sel.Name
		case name != "":
			l.fields = append(l.fields, name)
		default:
			l.more = l.more || !r.isOfWork(field)
		}
	}
	if l.event == "" {
		r.complain(at, "it has no event")
		return
	}
	r.lines = append(r.lines, l)
}

// appended returns the fields that are written literally, including those of append.
func appended(fields []ast.Expr) []ast.Expr {
	var all []ast.Expr
	for _, field := range fields {
		if call, ok := field.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "append" {
				all = append(all, appended(call.Args)...)
				continue
			}
		}
		all = append(all, field)
	}
	return all
}

// isOfWork reports whether fields come from telemetry.Fields, which the page describes
// once for all events.
func (r *reader) isOfWork(field ast.Expr) bool {
	call, ok := field.(*ast.CallExpr)
	if !ok {
		return false
	}
	f := r.calleeOf(call)
	return f != nil && f.FullName() == module+"/invoker/telemetry.Fields"
}

func isEvent(o types.Object) bool {
	return o != nil && o.Pkg() != nil && o.Pkg().Path() == module+"/internal/logevent"
}

// fieldName returns the name of a field that is written out, or nothing.
func (r *reader) fieldName(field ast.Expr) string {
	call, ok := field.(*ast.CallExpr)
	if !ok {
		return ""
	}
	f := r.calleeOf(call)
	switch {
	case f == nil || f.Pkg() == nil || f.Pkg().Path() != "go.uber.org/zap":
		return ""
	case f.Name() == "Error":
		return "error"
	}
	if name := r.info.Types[call.Args[0]].Value; name != nil && name.Kind() == constant.String {
		return constant.StringVal(name)
	}
	return ""
}

// calleeOf returns the function that a call names, or nil.
func (r *reader) calleeOf(call *ast.CallExpr) *types.Func {
	switch of := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		f, _ := r.info.Uses[of.Sel].(*types.Func)
		return f
	case *ast.Ident:
		f, _ := r.info.Uses[of].(*types.Func)
		return f
	}
	return nil
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir, Export string
	DepOnly                 bool
	GoFiles                 []string
}

// list lists the packages and their dependencies, compiled.
func list(t *testing.T, patterns ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,DepOnly,GoFiles"}, patterns...)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// read reads the packages.
func read(t *testing.T) *reader {
	t.Helper()
	packages := list(t, "./canister/...", "./invoker/...", "./ensemble/...", "./converse/...", "./mcpadapter/...",
		"./config/...", "./cmd/...", "./internal/...")
	compiled := make(map[string]string)
	for _, p := range packages {
		compiled[p.ImportPath] = p.Export
	}
	r := &reader{files: token.NewFileSet()}
	checks := types.Config{Importer: importer.ForCompiler(r.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
	for _, p := range packages {
		if p.DepOnly || slices.Contains(forwarders, p.ImportPath) {
			continue
		}
		var syntax []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(r.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			syntax = append(syntax, file)
		}
		r.info = &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
		if _, err := checks.Check(p.ImportPath, r.files, syntax, r.info); err != nil {
			t.Fatal(err)
		}
		for _, file := range syntax {
			for n := range ast.Preorder(file) {
				switch n := n.(type) {
				case *ast.CallExpr:
					r.visit(n)
				case *ast.CompositeLit:
					r.visitList(n)
				}
			}
		}
	}
	return r
}

// events returns the names of the events, by their variables.
func events(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("logevent.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	taken := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^(?:var|\t)\s*(\w+)\s*= named\("(.*)"\)$`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`).MatchString(m[2]) || taken[m[2]] {
			t.Errorf("the name of %s, %q, is taken or not dotted and in lower case", m[1], m[2])
		}
		names[m[1]], taken[m[2]] = m[2], true
	}
	if count := strings.Count(string(text), "named(") - 1; len(names) != count {
		t.Fatalf("%d events were found, and there are %d", len(names), count)
	}
	return names
}

// row is the row of an event on the page.
type row struct{ levels, fields []string }

// table reads the page.
func table(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := make(map[string]row)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.]+)` \\| ([^|]*) \\| [^|]+ \\|([^|]*)\\|$").FindAllStringSubmatch(string(text), -1) {
		one := row{levels: strings.Split(m[2], ", ")}
		for _, field := range quoted.FindAllStringSubmatch(m[3], -1) {
			one.fields = append(one.fields, field[1])
		}
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s: %s stands there twice", page, m[1])
		}
		rows[m[1]] = one
	}
	return rows
}

// Every line of the library and of the command has an event and a message that
// never changes, and the table has every event, with its levels and fields.
func TestLines(t *testing.T) {
	r, names, rows := read(t), events(t), table(t)
	for _, problem := range r.wrong {
		t.Error(problem)
	}
	if len(r.lines) < len(names) {
		t.Errorf("%d lines were found, fewer than there are events", len(r.lines))
	}
	written := make(map[string][]line)
	for _, l := range r.lines {
		written[names[l.event]] = append(written[names[l.event]], l)
	}
	for variable, name := range names {
		if written[name] == nil {
			t.Errorf("nothing writes %s (%s)", variable, name)
			continue
		}
		if told, ok := rows[name]; !ok {
			t.Errorf("%s lacks %s", page, name)
		} else {
			compare(t, name, written[name], told)
		}
		delete(rows, name)
	}
	for name := range maps.Keys(rows) {
		t.Errorf("%s has %s, which nothing writes", page, name)
	}
}

// compare holds the row of an event against the lines that write it.
func compare(t *testing.T, name string, lines []line, told row) {
	t.Helper()
	levels, fields := make(map[string]bool), make(map[string]bool)
	var anyLevel, anyField bool
	for _, l := range lines {
		anyLevel, anyField = anyLevel || l.level == "", anyField || l.more
		for _, field := range l.fields {
			fields[field] = true
			if !slices.Contains(told.fields, field) {
				t.Errorf("%s: %s: the page lacks the field %q", l.at, name, field)
			}
		}
		if levels[l.level] = true; l.level != "" && !slices.Contains(told.levels, l.level) {
			t.Errorf("%s: %s: the page lacks the level %s", l.at, name, l.level)
		}
	}
	for _, level := range told.levels {
		if !levels[level] && !anyLevel {
			t.Errorf("%s: %s never has the level %q", page, name, level)
		}
	}
	for _, field := range told.fields {
		if !fields[field] && !anyField {
			t.Errorf("%s: %s never has the field %q", page, name, field)
		}
	}
}
