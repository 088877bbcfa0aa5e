// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLineLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		m := &lineLimiter{report: func(line string) { got = append(got, line) }}
		for range 1000 {
			m.add([]byte("tick"))
		}
		if len(got) != maxLines {
			t.Errorf("%d of 1000 lines of one second were reported, want %d", len(got), maxLines)
		}
		time.Sleep(time.Second)
		m.add([]byte("tock"))
		m.flush()
		tail := got[len(got)-2:]
		if tail[0] != "(990 more lines)" || tail[1] != "tock" {
			t.Errorf("a second later: %q, want the count and the line", tail)
		}
	})
}
