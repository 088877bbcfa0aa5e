// SPDX-License-Identifier: Apache-2.0

package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/consort-go/consort/ensemble"
)

// Protocols are the newest version of the protocol and the last of the older kind.
var Protocols = []string{"2026-07-28", "2025-11-25"}

// Roster returns a roster that is closed after the test.
func Roster(t *testing.T, ensembles ...*ensemble.Ensemble) *ensemble.Roster {
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roster.Close(context.Background()) })
	return roster
}

// SameJSON reports whether two texts hold the same JSON value.
func SameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}
