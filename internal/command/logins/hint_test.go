// SPDX-License-Identifier: Apache-2.0

package logins

import (
	"testing"

	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/histories"
)

// A hint can be typed as it is.
func TestHint(t *testing.T) {
	at := &histories.Location{Config: configfile.Flags{File: "work.toml"}, Flag: "talks.db"}
	if got, want := Hint(at, "my notes"), "type: consort login 'my notes' --config work.toml"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
