// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"testing"

	"github.com/consort-go/consort/invoker"
)

// TestCatalogSetsCollisionsAside: two names have the same hash once in 2^60.
func TestCatalogSetsCollisionsAside(t *testing.T) {
	a, b := New("a", nil, nil), New("b", nil, nil)
	first := &Tool{name: "same", ensemble: a, definition: &invoker.Definition{Name: "x"}}
	second := &Tool{name: "same", ensemble: b, definition: &invoker.Definition{Name: "y"}}
	c := newCatalog(&members{ensembles: []*Ensemble{b, a}}, []*offer{{tools: []*Tool{second}}, {tools: []*Tool{first}}}, []error{nil, nil})
	if found, _ := c.Find("same"); found != first || len(c.Tools()) != 1 {
		t.Errorf("found %v of %d tools", found, len(c.Tools()))
	}
	if aside := c.Aside(); len(aside) != 1 || aside[0] != (Aside{"b", "y", `the model would see it under the same name as "x" of "a"`}) {
		t.Errorf("set aside are %v", aside)
	}
}

// A catalog does not keep derived values for an unlimited number of keys.
func TestDeriveIsBounded(t *testing.T) {
	catalog := &Catalog{}
	for key := range 1000 {
		catalog.Derive(key, func() any { return key })
	}
	if n := len(catalog.derived.values); n > maxDerived {
		t.Errorf("it keeps %d values", n)
	}
}
