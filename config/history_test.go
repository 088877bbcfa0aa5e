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
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// TestTheStoreIsOpenedWhenItIsWanted: and not before, and closed with the rest.
func TestTheStoreIsOpenedWhenItIsWanted(t *testing.T) {
	for _, kind := range []config.StoreKind{"", config.StoreSQLite, config.StoreFiles} {
		t.Run(string(kind), func(t *testing.T) { openedWhenWanted(t, kind) })
	}
}

func openedWhenWanted(t *testing.T, kind config.StoreKind) {
	path := filepath.Join(t.TempDir(), "talks")
	parts, err := config.Assemble(&config.Config{History: &config.History{Path: values.Plain(path), Store: kind}}, nil)
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

// TestWithoutAStoreNothingIsKept: there is none, and no file.
func TestWithoutAStoreNothingIsKept(t *testing.T) {
	c, err := config.Parse("consort.toml", []byte("[history]\nstore = \"none\"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*config.Config{nil, {}, c} {
		keepsNothing(t, c)
	}
}

func keepsNothing(t *testing.T, c *config.Config) {
	parts, err := config.Assemble(c, nil)
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
		"no path":     {config.History{}, "history.path: missing"},
		"no database": {config.History{Path: values.Plain(other)}, "history.path: "},
		"no folder":   {config.History{Path: values.Hidden("/nowhere-4711-secret/talks.db")}, "history.path: "},
		"no file":     {config.History{Path: values.Plain(other), Store: config.StoreFiles}, "history.path: "},
		"no DSN":      {config.History{Store: config.StorePostgres}, "history.dsn: missing"},
		"no server": {
			config.History{Store: config.StorePostgres, DSN: values.Hidden("postgres://me:pass-4711@127.0.0.1:1/x?connect_timeout=2")}, "history.dsn: ",
		},
		"not a DSN": {config.History{Store: config.StorePostgres, DSN: values.Hidden("host=127.0.0.1 password='pass-4711' port=nonsense")}, "history.dsn: "},
		"no kind":   {config.History{Path: values.Plain(other), Store: "paper"}, `history.store: unknown store "paper"`},
	} {
		store, err := (&config.Config{History: &test.table}).OpenHistory(t.Context())
		if store != nil || err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %v, %v", name, store, err)
		}
	}
}

// TestAPasswordOfADatabaseIsASecret: wherever it stands, and alone too.
func TestAPasswordOfADatabaseIsASecret(t *testing.T) {
	for dsn, said := range map[string]string{
		"postgres://me:hunter-4711@db/talks":              "hunter-4711",
		"postgres://me@db/talks?password=hunter-4711&x=y": "hunter-4711",
		"host=db password=hunter-4711 user=me":            "hunter-4711",
		`host=db password = 'hunter\'s \\ 4711' user=me`:  `hunter's \ 4711`,
		"host=db.hidden.example user=me":                  "host=db.hidden.example user=me",
	} {
		c := &config.Config{History: &config.History{Store: config.StorePostgres, DSN: values.Hidden(dsn)}}
		if got := c.Redact()("it was " + said + "!"); got != "it was [secret]!" {
			t.Errorf("%s: %s", dsn, got)
		}
	}
}

// TestConversationsOnAServer: the DSN comes from a variable, and two that have the
// same schema share what is there.
func TestConversationsOnAServer(t *testing.T) {
	dsn := pgtest.DSN(t)
	lookup := func(name string) (string, bool) { return dsn, name == "DATABASE_URL" }
	opened := func(schema string) history.Store {
		c, err := config.Parse("consort.toml", []byte("[history]\nstore = \"postgres\"\ndsn = \"env:DATABASE_URL\"\n"+schema), &config.Options{Lookup: lookup})
		if err != nil {
			t.Fatal(err)
		}
		store, err := c.OpenHistory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	one, two, other := opened(""), opened(""), opened("schema = \"other\"\n")
	if err := one.Append(t.Context(), "a", 0, canister.User{Content: canister.Texts("hi")}); err != nil {
		t.Fatal(err)
	}
	if info, err := two.Info(t.Context(), "a"); err != nil || info.Length != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := other.Info(t.Context(), "a"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("another schema: %v", err)
	}
}

func TestTitlesOfStores(t *testing.T) {
	for kind, want := range map[config.StoreKind]string{config.StorePostgres: "PostgreSQL", config.StoreFiles: "files", "other": "other"} {
		if got := kind.Title(); got != want {
			t.Errorf("the title of %s is %q, want %q", kind, got, want)
		}
	}
}
