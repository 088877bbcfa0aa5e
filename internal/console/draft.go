// SPDX-License-Identifier: Apache-2.0

package console

import (
	"unicode/utf8"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
)

// draft is the text of a message that is not complete.
type draft struct {
	attempt int64 // of its deltas; 0 before the first
	pieces  redact.Stream
	last    rune // of the text so far
}

// begin must be called with each delta. It reports whether the message begins again, which makes its
// text obsolete.
func (w *draft) begin(d engine.Delta) (again bool) {
	if again = d.BeginsAgain(w.attempt); again {
		*w = draft{}
	}
	w.attempt = d.Attempt
	return again
}

// next returns the part of the text that can be shown now, as it is shown. The possible beginning of a
// secret is kept until more of it has come.
func (w *draft) next(piece string, clean redact.PartFunc) string {
	if piece == "" {
		return ""
	}
	text := w.pieces.Next(piece, clean)
	shown := display.Continue(w.last, text)
	if last, size := utf8.DecodeLastRuneInString(text); size > 0 {
		w.last = last
	}
	return shown
}
