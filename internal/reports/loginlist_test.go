// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/terminal"
)

// The hint of a login is printed as it is: the path of a configuration may have spaces that count.
func TestLoginHintIsUnchanged(t *testing.T) {
	list := &LoginList{Logins: []Login{{Server: "notes", State: NeedsLogin}}}
	const want = "type: consort login notes --config 'my  work.toml'"
	if text := list.Text(terminal.NewScreen(os.Stdout, os.Stderr).Results, func(string) string { return want }); !strings.Contains(text, want) {
		t.Errorf("%q", text)
	}
}
