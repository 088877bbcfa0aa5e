// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/config"
	"github.com/pelletier/go-toml/v2"
)

func FuzzParse(f *testing.F) {
	if text, err := os.ReadFile("../docs/configuration.md"); err == nil {
		for _, example := range blocks(string(text), "toml") {
			f.Add(example, "{}")
		}
		for _, example := range blocks(string(text), "json") {
			f.Add("import = ['m.json']", example)
		}
	}
	f.Add(planted, plantedJSON)
	f.Add("[[a]]\n[a.b]\n[[a]]\n[a.b.c]\nd.e = [{}, [{x = 1}]]\n", "[{}]")
	f.Fuzz(func(t *testing.T, text, foreign string) {
		c, err := config.Parse("f.toml", []byte(text), &config.Options{
			Lookup:   secretly,
			ReadFile: func(string) ([]byte, error) { return []byte(foreign), nil },
		})
		if err == nil {
			var all map[string]any
			if err := toml.Unmarshal([]byte(text), &all); err != nil && !strings.HasPrefix(text, "\ufeff") {
				t.Fatalf("what is not TOML was taken: %v", err)
			}
			if c == nil {
				t.Fatal("neither a configuration nor an error")
			}
			return
		}
		var found *config.Error
		if !errors.As(err, &found) || len(found.Problems) == 0 || c != nil {
			t.Fatalf("the error is a %T: %v", err, err)
		}
		for _, p := range found.Problems {
			of := text
			if p.File != "f.toml" {
				of = foreign
			}
			within(t, p, strings.TrimPrefix(of, "\ufeff"))
		}
	})
}

// within fails the test if p is not at a place of text.
func within(t *testing.T, p *config.Problem, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > 1+utf8.RuneCountInString(lines[p.Line-1]) {
		t.Fatalf("no such place: %v", p)
	}
	if p.Message == "" {
		t.Fatalf("no message: %#v", p)
	}
}
