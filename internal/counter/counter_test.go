// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"fmt"
	"testing"
)

// A counter without a bound keeps all names, and one with a bound forgets the others when it
// is full.
func TestCounter(t *testing.T) {
	for most, want := range map[int]int{0: 10_000, 100: 100} {
		c := Names{Most: most}
		for i := range 10_000 {
			if !c.Claim(fmt.Sprint(i)) || c.Claim(fmt.Sprint(i)) {
				t.Fatalf("most %d: the name %d is not taken once", most, i)
			}
		}
		if len(c.of) != want {
			t.Errorf("most %d: it has %d names, want %d", most, len(c.of), want)
		}
	}
}
