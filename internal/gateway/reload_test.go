// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each key of [serve] is read at the start, or withRunning takes it from a changed
// configuration; the reference lists the former.
func TestKeysAtStart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	later := []string{"token", "clients", "profiles", "rules", "budgets", "oidc", "open", "hosts", "origins", "rate", "burst", "parallel",
		"resource_metadata", "console", "trace_url"}
	var fixed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `serve\\.([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(later, row[1]) {
			fixed = append(fixed, row[1])
		}
	}
	slices.Sort(fixed)
	var listed []string
	for _, key := range atStart {
		if name, ok := strings.CutPrefix(key, "serve."); ok {
			listed = append(listed, name)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(fixed, listed) {
		t.Errorf("of [serve], the reference has the keys %v, and at the start are read %v", fixed, listed)
	}
	_, section, _ := strings.Cut(string(text), "keys read only at the start |")
	section, _, _ = strings.Cut(section, "\n\n")
	for _, key := range atStart {
		table, name, found := strings.Cut(key, ".")
		if !found {
			table, name = "others", table
		}
		if !regexp.MustCompile("(?m)^\\| `?\\[?" + table + "\\]?`? \\|.*`" + name + "`").MatchString(section) {
			t.Errorf("the reference does not say that %s is read only at the start", key)
		}
	}
	for key, want := range map[string]bool{"serve.http": true, "serve.http_": false, "serve.grpc_tls.key": true, "serve.clients": false, "history.path": true} {
		if needsRestart(key) != want {
			t.Errorf("%s needs a restart: %v", key, !want)
		}
	}
}
