// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// Each test that a page names is there.
func TestNamedTestsAreThere(t *testing.T) {
	defined := map[string]bool{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && (base == "node_modules" || base == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		for _, match := range definedTest.FindAllSubmatch(text, -1) {
			defined[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages(t) {
		for _, match := range namedTest.FindAllStringSubmatch(page, -1) {
			if !defined[match[1]] {
				t.Errorf("%s names the test %s, which is not there", name, match[1])
			}
		}
	}
}
