// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"regexp"
	"strings"
	"testing"
)

// opening is the beginning of a page: its title, and its shelf.
var opening = regexp.MustCompile(`^# [^\n]+\n\n(A tutorial|A guide|A reference|An explanation)( and (a guide|a reference|an explanation))?: `)

// Each page of the documentation says which kind it is, and the start page lists it on
// that shelf.
func TestEveryPageStandsOnItsShelf(t *testing.T) {
	all := pages(t)
	start := all["docs/README.md"]
	shelves := map[string]string{}
	for _, part := range strings.Split(start, "\n## ")[1:] {
		kind, _, _ := strings.Cut(part, ":")
		shelves[strings.TrimSuffix(strings.ToLower(kind), "s")] = part
	}
	for name, page := range all {
		below, isDocs := strings.CutPrefix(name, "docs/")
		if !isDocs || below == "README.md" {
			continue
		}
		if decision, ok := strings.CutPrefix(below, "decisions/0"); ok {
			title, _, _ := strings.Cut(page, "\n")
			_, title, _ = strings.Cut(title, ". ")
			if !strings.Contains(all["docs/decisions/README.md"], "["+title+"](0"+decision+")") {
				t.Errorf("docs/decisions/README.md does not list %s with its title", name)
			}
			continue
		}
		kind := opening.FindStringSubmatch(page)
		if kind == nil {
			t.Errorf("%s does not say after its title whether it is a tutorial, a guide, a reference or an explanation", name)
			continue
		}
		_, shelf, _ := strings.Cut(strings.ToLower(kind[1]), " ")
		if !strings.Contains(shelves[shelf], "]("+below+")") && !strings.Contains(shelves[shelf], "]("+strings.TrimSuffix(below, "/README.md")+")") {
			t.Errorf("docs/README.md does not list %s as %s", name, strings.ToLower(kind[1]))
		}
	}
}

// Each public package has a row in the table of stability.
func TestStabilityHasEveryPackage(t *testing.T) {
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[([\w/]+)\]\(\.\./([\w/]+)\) \| ([\w ]+) \| .+ \|$`).FindAllStringSubmatch(read(t, "docs", "stability.md"), -1) {
		if row[1] != row[2] {
			t.Errorf("the row of %s links to %s", row[1], row[2])
		}
		rows[row[1]] = row[3]
	}
	public := []string{"converse/temporal"} // a module of its own
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "github.com/consort-go/consort/")
		if top, below, _ := strings.Cut(name, "/"); top != "internal" && top != "examples" && !strings.Contains(below, "internal/") {
			public = append(public, name)
		}
	}
	for _, name := range public {
		if stability := rows[name]; stability != "stable" && stability != "may change" {
			t.Errorf("docs/stability.md does not say whether %s is stable or may change", name)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/stability.md has a row for %s, which is not a public package", name)
	}
}

// Each failure code has a row in docs/failures.md, and each row has a code.
func TestFailuresHasEveryCode(t *testing.T) {
	codes := map[string]bool{}
	for _, code := range regexp.MustCompile(`(?m)^\t\w+ +Code = "(\w+)"`).FindAllStringSubmatch(read(t, "invoker", "failure.go"), -1) {
		codes[code[1]] = true
	}
	if len(codes) == 0 {
		t.Fatal("invoker/failure.go has no codes")
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(read(t, "docs", "failures.md"), -1) {
		if !codes[row[1]] {
			t.Errorf("docs/failures.md has a row too many for %s", row[1])
		}
		delete(codes, row[1])
	}
	for code := range codes {
		t.Errorf("docs/failures.md does not say what to do about %s", code)
	}
}
