// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"fmt"
	"testing"
)

// A name can be taken once, until it is free again.
func TestCounter(t *testing.T) {
	c := Names{}
	for i := range 1000 {
		if name := fmt.Sprint(i); !c.Claim(name) || c.Claim(name) {
			t.Fatalf("the name %d is not taken once", i)
		}
	}
	if c.Add("0", -1); len(c.of) != 999 || !c.Claim("0") {
		t.Errorf("it has %d names", len(c.of))
	}
}
