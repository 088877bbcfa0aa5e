// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
)

// reference is the text of docs/configuration.md.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a language in a Markdown text.
func blocks(text, language string) []string {
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

func TestReferenceNamesEveryKey(t *testing.T) {
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z_.\\[\\]]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(reference(t), -1) {
		if _, twice := documented[row[1]]; twice {
			t.Errorf("%s is documented twice", row[1])
		}
		documented[row[1]] = strings.ReplaceAll(row[2], "`", "")
	}
	grammar := config.Grammar()
	for _, key := range slices.Sorted(maps.Keys(grammar)) {
		kind, ok := documented[key]
		switch {
		case !ok:
			t.Errorf("%s (%s) is not documented", key, grammar[key])
		case kind != grammar[key]:
			t.Errorf("%s is documented as %q; it is %q", key, kind, grammar[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := grammar[key]; !ok {
			t.Errorf("%s is documented, but there is no such key", key)
		}
	}
}

// anything answers for every variable, for the examples of the reference.
func anything(name string) (string, bool) {
	if name == "PORT" || name == "TENANT_ID" {
		return "4711", true
	}
	return "anything-for-" + name, true
}

func TestReferenceExamplesLoad(t *testing.T) {
	imported := blocks(reference(t), "json")
	examples := blocks(reference(t), "toml")
	if len(imported) == 0 || len(examples) < 5 {
		t.Fatalf("the reference has %d examples in JSON and %d in TOML", len(imported), len(examples))
	}
	for _, example := range examples {
		for _, foreign := range imported {
			_, err := config.Parse("consort.toml", []byte(example), &config.Options{
				Lookup:   anything,
				ReadFile: func(string) ([]byte, error) { return []byte(foreign), nil },
			})
			if err != nil {
				t.Errorf("%v\nin\n%s", err, example)
			}
		}
	}
}

// TestEveryFieldCanBeSet looks for fields that all examples of the reference
// leave alone; the longest is to use every key that goes with the others.
func TestEveryFieldCanBeSet(t *testing.T) {
	seen := map[string]bool{}
	for _, example := range blocks(reference(t), "toml") {
		c, err := config.Parse("consort.toml", []byte(example), &config.Options{
			Lookup: anything,
			ReadFile: func(string) ([]byte, error) {
				return []byte(`{"mcpServers": {"imported": {"command": "x", "unknown": 1}}}`), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		visit(reflect.ValueOf(*c), "Config", seen)
	}
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		if !seen[path] {
			t.Errorf("no example sets %s", path)
		}
	}
}

// visit notes for each exported field below v whether some value has it set.
func visit(v reflect.Value, path string, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), path, seen)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), path, seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			visit(v.MapIndex(key), path, seen)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[config.Config]().PkgPath() || v.Type() == reflect.TypeFor[config.Problem]() {
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				name := v.Type().Name() + "." + field.Name
				seen[name] = seen[name] || !v.Field(i).IsZero()
				visit(v.Field(i), name, seen)
			}
		}
	}
}
