// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

type shelf struct{ books []string }

type book struct {
	Title string `json:"title"`
}

func (s *shelf) AddBook(_ context.Context, b book) (int, error) {
	s.books = append(s.books, b.Title)
	return len(s.books), nil
}

func (s *shelf) List(context.Context) ([]string, error) { return s.books, nil }

func (s *shelf) Clear(context.Context) error { s.books = nil; return nil }

func (s *shelf) BurnBook(_ context.Context, b book) error {
	return invoker.Failf(invoker.Conflict, "%s is on loan", b.Title)
}

func (s *shelf) Any(context.Context) (any, error)        { return nil, nil }
func (s *shelf) Panic(context.Context) error             { panic("x") }
func (s *shelf) HTTPHeaders(context.Context) error       { return nil }
func (s *shelf) NoContext(book) error                    { return nil }
func (s *shelf) NoError(context.Context) string          { return "" }
func (s *shelf) Many(context.Context, ...book) error     { return nil }
func (s *shelf) Text(context.Context, string) error      { return nil }
func (s *shelf) Two(context.Context) (int, string)       { return 0, "" }
func (s *shelf) Three(context.Context, book, book) error { return nil }

func TestMethods(t *testing.T) {
	tools, err := invoker.Methods(&shelf{}, map[string]invoker.Method{
		"AddBook":     {Description: "Put a book there.", Options: invoker.Options{Title: "Add", Exclusive: true}},
		"List":        {Options: invoker.Options{Hints: invoker.Hints{ReadOnly: true}}},
		"Clear":       {Name: "empty"},
		"BurnBook":    {Options: invoker.Options{Needs: []invoker.Need{user}}},
		"Any":         {},
		"Panic":       {},
		"HTTPHeaders": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]invoker.Invoker{}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Definition().Name)
		byName[tool.Definition().Name] = tool
	}
	if got := strings.Join(names, " "); got != "add_book any burn_book empty http_headers list panic" {
		t.Fatal(got)
	}
	if def := byName["add_book"].Definition(); def.Description != "Put a book there." || def.Title != "Add" || !def.Exclusive || !def.Takes("title") {
		t.Errorf("got %+v", def)
	}
	show := func(name, arguments string, values ...invoker.Value) string {
		ctx := invoker.WithTrusted(context.Background(), values...)
		output, err := byName[name].Invoke(ctx, &invoker.Call{Arguments: []byte(arguments)})
		if err != nil {
			return err.Error()
		}
		if len(output.Content) == 0 {
			return "nothing"
		}
		return string(output.Content[0].(canister.StructuredContent).JSON)
	}
	for _, step := range []struct{ tool, arguments, want string }{
		{"list", ``, `null`},
		{"add_book", `{"title":"Emma"}`, `1`},
		{"list", `{}`, `["Emma"]`},
		{"any", ``, `nothing`},
		{"empty", ``, `nothing`},
		{"list", `{}`, `null`},
	} {
		if got := show(step.tool, step.arguments); got != step.want {
			t.Errorf("%s: got %s, want %s", step.tool, got, step.want)
		}
	}
	for _, step := range []struct{ tool, arguments, want string }{
		{"list", `{"a":1}`, "INVALID_ARGUMENTS"},
		{"add_book", `{}`, "/title: is missing"},
		{"burn_book", `{"title":"Emma"}`, "UNAUTHORIZED"},
		{"panic", ``, "INTERNAL"},
	} {
		if got := show(step.tool, step.arguments); !strings.Contains(got, step.want) {
			t.Errorf("%s: got %s, want %s", step.tool, got, step.want)
		}
	}
	if got := show("burn_book", `{"title":"Emma"}`, user.Value(1)); got != "CONFLICT: Emma is on loan" {
		t.Error(got)
	}
}

func TestMethodsThatCannotBe(t *testing.T) {
	var none *shelf
	for _, test := range []struct {
		receiver any
		method   string
		want     string
	}{
		{nil, "List", "not nil"},
		{none, "List", "not nil"},
		{&shelf{}, "AddBok", `*invoker_test.shelf has no exported method "AddBok"; did you mean AddBook?`},
		{&shelf{}, "addBook", "did you mean AddBook?"},
		{&shelf{}, "Zzzzzzzzzzzz", "it has AddBook, "},
		{7, "List", "nor any other"},
		{shelf{}, "List", "give a pointer"},
		{&shelf{}, "NoContext", "the method NoContext of *invoker_test.shelf is func(invoker_test.book) error; a tool is"},
		{&shelf{}, "NoError", "a tool is"},
		{&shelf{}, "Many", "a tool is"},
		{&shelf{}, "Two", "a tool is"},
		{&shelf{}, "Three", "a tool is"},
		{&shelf{}, "Text", `tool "text": the argument type is string`},
	} {
		tools, err := invoker.Methods(test.receiver, map[string]invoker.Method{test.method: {}})
		if err == nil || tools != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.method, err, test.want)
		}
	}
	_, err := invoker.Methods(&shelf{}, map[string]invoker.Method{"List": {}, "Clear": {Name: "list"}, "Nope": {}})
	if err == nil || !strings.Contains(err.Error(), `Clear and List are both the tool "list"`) || !strings.Contains(err.Error(), "Nope") {
		t.Errorf("not all is said: %v", err)
	}
	if tools, err := invoker.Methods(&shelf{}, nil); err != nil || len(tools) != 0 {
		t.Errorf("got %v, %v", tools, err)
	}
}
