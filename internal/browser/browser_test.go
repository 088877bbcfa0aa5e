// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"os/exec"
	"testing"
)

func TestOnlyWebPagesAreOpened(t *testing.T) {
	for _, address := range []string{"", "file:///etc/passwd", "javascript:alert(1)", "https:", "-a", "example.com", "https://[", "vscode://x/y"} {
		if CanOpen(address) || Open(t.Context(), address) == nil || Warning(address) == "" {
			t.Errorf("%q is a page", address)
		}
	}
}

func TestWarnings(t *testing.T) {
	for address, warns := range map[string]bool{
		"https://example.com/login?x=a@b":         false,
		"http://localhost:8080/":                  false,
		"https://example.com@evil.example/":       true,
		"https://xn--pple-43d.com/":               true,
		"https://\u0430pple.com/":                 true,
		"https://example.com/\u0430":              false,
		"https://user:password@internal.example/": true,
	} {
		if got := Warning(address); (got != "") != warns || !CanOpen(address) {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestRun(t *testing.T) {
	name, err := exec.LookPath("false")
	if err != nil {
		t.Skip("there is no command that fails")
	}
	if run(t.Context(), name) == nil {
		t.Error("a command that fails has no error")
	}
	if run(t.Context(), name+"-missing") == nil {
		t.Error("a command that does not exist has no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if cat, err := exec.LookPath("true"); err == nil && run(ctx, cat) != nil {
		t.Error("a command that succeeds has an error")
	}
}
