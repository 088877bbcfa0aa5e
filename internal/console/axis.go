// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/transcript"
)

// span is when a call ran.
type span struct {
	number     int
	begin, end time.Time
}

// spansOf returns a bar for each call that was made together with others, by the number of
// its entry: when it ran between the beginning of the first and the end of the last one.
func spansOf(all []transcript.Entry) map[int]part {
	messages := map[string][]span{}
	for i := range all {
		if call, ok := all[i].Canister.(canister.Invocation); ok {
			if s, ok := spanOf(&all[i]); ok {
				messages[call.Message] = append(messages[call.Message], s)
			}
		}
	}
	bars := map[int]part{}
	for _, spans := range messages {
		begin, end := spans[0].begin, spans[0].end
		for _, s := range spans {
			if s.begin.Before(begin) {
				begin = s.begin
			}
			if s.end.After(end) {
				end = s.end
			}
		}
		if whole := end.Sub(begin); len(spans) > 1 && whole > 0 {
			for _, s := range spans {
				bars[s.number] = bar(s.begin.Sub(begin), s.end.Sub(s.begin), whole)
			}
		}
	}
	return bars
}

// spanOf returns when a call ran, from its first attempt to its result.
func spanOf(e *transcript.Entry) (s span, ok bool) {
	s = span{number: e.Number, begin: e.Header().Time}
	for _, note := range e.Notes {
		if at := note.Header().Time; note.Kind() == canister.KindIntent && !at.IsZero() {
			s.begin = at
			break
		}
	}
	if e.Result.Canister == nil {
		return s, false
	}
	s.end = e.Result.Header().Time
	return s, !s.begin.IsZero() && !s.end.Before(s.begin)
}

// bar returns a time axis with one call on it.
func bar(after, took, whole time.Duration) part {
	const width = 1000
	at := func(d time.Duration) int { return int(d * width / whole) }
	label := fmt.Sprintf("From %s to %s of the %s that the calls of this message took", short(after), short(after+took), short(whole))
	return svg("svg", class("axis"), attr("viewBox", fmt.Sprintf("0 0 %d 10", width)), attr("preserveAspectRatio", "none"), attr("role", "img"), attr("aria-label", label),
		svg("rect", class("line"), attr("y", "4"), attr("width", fmt.Sprint(width)), attr("height", "2")),
		svg("rect", class("bar"), attr("x", fmt.Sprint(min(at(after), width-4))), attr("width", fmt.Sprint(max(at(took), 4))), attr("height", "10")))
}
