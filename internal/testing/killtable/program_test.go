// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"maps"
	"slices"
	"testing"
)

// Together, the stores have each canister.
func TestKilledPrograms(t *testing.T) {
	step := 24
	if Many() {
		step = len(stores)
	}
	for i, name := range slices.Sorted(maps.Keys(stores)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The first canister is the person's message.
			Column{Engine: "program", Store: stores[name]}.TestPrograms(t, 2+i, step)
		})
	}
}
