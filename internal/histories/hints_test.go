// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/display"
)

// The commands that messages name use the same configuration and store.
func TestHintsKeepTheStore(t *testing.T) {
	store := history.NewMemory()
	m, _ := managing(t, store)
	m.at = &Location{Config: configfile.Flags{File: "work.toml"}, Flag: "my talks.db"}
	same := " --config work.toml --history " + display.Word("my talks.db")
	_, last := m.at.Find(t.Context(), store, Choice{Last: true})
	if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Pay.")}); err != nil {
		t.Fatal(err)
	}
	_, unknown := m.at.Known(t.Context(), store, "none")
	for want, err := range map[string]error{
		"start one with consort chat" + same:                             last,
		"conversation none; consort history list" + same + " prints all": unknown,
		"list the open waits with: consort approve talk" + same:          m.Answer(t.Context(), Answering{ID: "talk", Wait: "w", With: &Answer{}}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got, want := m.at.CommandLine("login 'my notes'"), "consort login 'my notes' --config work.toml"; got != want { // it has no flag --history
		t.Errorf("%s, want %s", got, want)
	}
}
