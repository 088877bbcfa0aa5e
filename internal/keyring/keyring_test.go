// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"errors"
	"testing"

	"github.com/consort-go/consort/internal/loginkey"
	"github.com/zalando/go-keyring"
)

// An entry is stored, replaced and removed, apart from others.
func TestEntry(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") // the mock does not use it
	keyring.MockInit()
	one, two := New("one"), New("two")
	if _, err := one.Get(); !errors.Is(err, loginkey.ErrNotFound) {
		t.Errorf("an empty keyring: %v", err)
	}
	for _, text := range []string{"a", "b"} {
		if err := one.Set(text); err != nil {
			t.Fatal(err)
		}
		if got, err := one.Get(); err != nil || got != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := two.Get(); !errors.Is(err, loginkey.ErrNotFound) {
		t.Errorf("another entry: %v", err)
	}
	if err := one.Delete(); err != nil {
		t.Error(err)
	}
	if err := one.Delete(); !errors.Is(err, loginkey.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}
