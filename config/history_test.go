// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
)

// TestTheStoreIsOpenedWhenItIsWanted: and not before, and closed with the rest.
func TestTheStoreIsOpenedWhenItIsWanted(t *testing.T) {
	for _, kind := range []config.StoreKind{"", config.StoreSQLite, config.StoreFiles} {
		t.Run(string(kind), func(t *testing.T) { openedWhenWanted(t, kind) })
	}
}

func openedWhenWanted(t *testing.T, kind config.StoreKind) {
	path := filepath.Join(t.TempDir(), "talks")
	parts, err := config.Assemble(&config.Config{History: &config.History{Path: config.Plain(path), Store: kind}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there before anybody wants it: %v", err)
	}
	store, err := parts.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), "a", 0, canister.User{Content: canister.Texts("hi")}); err != nil {
		t.Fatal(err)
	}
	if again, err := parts.History(t.Context()); again != store || err != nil {
		t.Errorf("the second call: %v, %v", again, err)
	}
	if err := parts.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Info(t.Context(), "a"); !errors.Is(err, history.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestWithoutTheTableNothingIsKept: there is no store, and no file.
func TestWithoutTheTableNothingIsKept(t *testing.T) {
	parts, err := config.Assemble(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if store, err := parts.History(t.Context()); store != nil || err != nil {
		t.Errorf("%v, %v", store, err)
	}
	if err := parts.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if store, err := parts.History(t.Context()); store != nil || !errors.Is(err, history.ErrClosed) {
		t.Errorf("after Close: %v, %v", store, err)
	}
}

// TestAStoreThatIsNone: the key is named, and the secret in the path is not.
func TestAStoreThatIsNone(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		table config.History
		want  string
	}{
		"no path":     {config.History{}, "history.path: there is none"},
		"no database": {config.History{Path: config.Plain(other)}, "history.path: "},
		"no folder":   {config.History{Path: config.Hidden("/nowhere-4711-secret/talks.db")}, "history.path: "},
		"no file":     {config.History{Path: config.Plain(other), Store: config.StoreFiles}, "history.path: "},
		"no kind":     {config.History{Path: config.Plain(other), Store: "paper"}, `history.store: unknown store "paper"`},
	} {
		store, err := (&config.Config{History: &test.table}).OpenHistory(t.Context())
		if store != nil || err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %v, %v", name, store, err)
		}
	}
}
