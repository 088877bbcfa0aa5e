// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
)

// ModelTrouble returns what happens because a model did not answer: it, or another one, is
// asked again. It returns "" for other events. Clean, if not nil, removes secrets.
func ModelTrouble(event converse.Event, clean func(string) string) string {
	if clean == nil {
		clean = func(text string) string { return text }
	}
	switch e := event.(type) {
	case converse.ExchangeRetried:
		return fmt.Sprintf("the model did not answer, trying again in %s: %s", e.Wait.Round(time.Millisecond), display.Line(clean(e.Err.Error())))
	case converse.ExchangeMoved:
		return fmt.Sprintf("%s did not answer, asking %s: %s", display.Line(e.From), display.Line(e.To), display.Line(clean(e.Err.Error())))
	default:
		return ""
	}
}
