// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// The tools of a library are Go functions of the program, and trusted as those of ensemble.Local are.
func TestToolsAreTrusted(t *testing.T) {
	hints := invoker.Hints{Idempotent: true}
	add, err := invoker.New("add", "Adds.", func(context.Context, struct{}) (string, error) { return "", nil }, &invoker.Options{Hints: hints})
	if err != nil {
		t.Fatal(err)
	}
	e := ensemble.New("notes", local.Library{}.Source(add), nil)
	defer e.Close(t.Context())
	roster, err := ensemble.NewRoster(e)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := roster.Catalog(t.Context())
	if err != nil || len(catalog.Tools()) != 1 {
		t.Fatalf("%v, %v", catalog, err)
	}
	if got := catalog.Tools()[0].TrustedHints(); !got.Idempotent {
		t.Errorf("the trusted hints are %+v, want %+v", got, hints)
	}
}
