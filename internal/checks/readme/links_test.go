// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the pages of the module by their paths below the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if base := path.Base(name); err == nil && entry.IsDir() && (base == "node_modules" || base == "testdata" || base == ".git") {
			return fs.SkipDir
		}
		if err == nil && path.Ext(name) == ".md" {
			found[name] = read(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found["README.md"] == "" || found["docs/README.md"] == "" {
		t.Fatal("the README or the start page of the documentation is missing")
	}
	return found
}

var (
	code    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the headings of a page as links name them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, page := range all {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
			if strings.HasPrefix(match[1], "https://") {
				continue // elsewhere
			}
			to, anchor, _ := strings.Cut(match[1], "#")
			target := path.Join(path.Dir(name), to)
			if to == "" {
				target = name
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s: %v", name, match[1], err)
			}
			if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s: there is no such heading", name, match[1])
			}
		}
	}
}

var mention = regexp.MustCompile(`\bdocs/[\w/.-]*\w`)

// elsewhere is a page of others.
var elsewhere = regexp.MustCompile(`https?://[^\s)"\x60]+`)

// Comments and pages that name a page of the documentation name one that is there.
func TestMentionedPagesAreThere(t *testing.T) {
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && (base == "node_modules" || base == "testdata" || base == ".git") {
			return fs.SkipDir
		}
		if ext := path.Ext(name); ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for _, page := range mention.FindAllString(elsewhere.ReplaceAllString(string(text), ""), -1) {
			if _, err := fs.Stat(tree, page); err != nil {
				t.Errorf("%s mentions %s: %v", name, page, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Published files name neither local paths nor package registries.
func TestNoPlacesOfOneMachine(t *testing.T) {
	place := regexp.MustCompile(`(?i)/(root|home|work|users)/\w|registry\.|proxy\.golang`)
	for name, page := range pages(t) {
		for _, found := range place.FindAllString(page, -1) {
			t.Errorf("%s says %q", name, found)
		}
	}
}
