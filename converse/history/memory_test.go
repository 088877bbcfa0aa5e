// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"errors"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// The zero value of Memory is an empty store.
func TestZeroMemory(t *testing.T) {
	var store history.Memory
	if _, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
	said := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")}
	if err := store.Append(t.Context(), "talk", 0, said); err != nil {
		t.Fatal(err)
	}
	if info, err := store.Info(t.Context(), "talk"); err != nil || info.Length != 1 || info.Created.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrClosed) {
		t.Errorf("after Close the error is %v", err)
	}
}
