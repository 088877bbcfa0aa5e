// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/files"
)

// A conversation whose owner is not known, because it is damaged, does not hide those of a client.
func TestListNextToDamage(t *testing.T) {
	dir := t.TempDir()
	store, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := serveStore(t, store, nil, uses, nil, nil)
	s.create("hello")
	if err := store.Append(t.Context(), "other", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other", "info.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusOK, http.MethodGet, "/api/conversations", nil)
}
