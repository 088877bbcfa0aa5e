// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
)

// The end of a turn is told as it is: a turn that is tried again has not only failed, and one that another
// message has ended is not over by itself.
func TestSaidOf(t *testing.T) {
	clean := cleaner(func(s string) string { return strings.ReplaceAll(s, "swordfish", "[secret]") })
	again := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	for want, e := range map[string]engine.Ended{
		"The turn is over: answered":                              {Reason: converse.ReasonAnswered},
		"The turn waits for an answer.":                           {Reason: converse.ReasonWaiting},
		"The turn failed: bad [secret]":                           {Error: "bad swordfish"},
		"Another message came before the turn was over.":          {Superseded: "u"},
		"The turn failed, and is tried again at 09:30:00 UTC: no": {Error: "no", Again: again},
	} {
		if got := saidOf(e, clean); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
