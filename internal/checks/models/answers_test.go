// SPDX-License-Identifier: Apache-2.0

package models

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// answer returns the function that generates the answers of a server: any items in any
// order that its API has, some of them invalid, and sometimes a failure.
func (l *life) answer(s *server) openaiserver.Respond {
	return func(r *openaiserver.Request) openaiserver.Reply {
		switch {
		case s.away.Load():
			return openaiserver.Failure{Status: http.StatusServiceUnavailable, Message: "Overloaded"}
		case l.calm():
			return openaiserver.Message{Text: "Done."}
		case l.chance(20):
			return []openaiserver.Failure{
				openaiserver.RateLimited(0), openaiserver.ServerError(), {Status: 529, Message: "Overloaded"}, {Status: 503}, {Status: 422, Message: "No."},
			}[l.of(0, 1, 2, 3, 4)]
		case l.longest > 0 && len(r.Body) > l.longest:
			return openaiserver.ContextLength()
		}
		m := openaiserver.Message{Delta: l.of(-1, 3, 16, 100), Items: l.items(s)}
		switch {
		case l.chance(10):
			m.Finish = []string{"length", "content_filter"}[l.of(0, 1)]
		case s.api == messages && l.chance(10):
			m.Finish = []string{"refusal", "stop_sequence"}[l.of(0, 1)]
		case s.api == messages && len(m.Items) > 0 && m.Items[len(m.Items)-1].Kind == openaiserver.SearchItem:
			m.Finish = "pause_turn"
		}
		return m
	}
}

// items returns the items of an answer.
func (l *life) items(s *server) []openaiserver.Item {
	items := []openaiserver.Item{}
	add := func(kind openaiserver.ItemKind, text string) {
		items = append(items, openaiserver.Item{Kind: kind, Text: text})
	}
	think := func() {
		switch {
		case l.chance(3):
			add(openaiserver.RedactedItem, "")
		case l.chance(3):
			add(openaiserver.ReasoningItem, s.mark()+": "+l.text())
		default:
			add(openaiserver.ReasoningItem, s.mark())
		}
	}
	if l.chance(2) {
		think()
	}
	for range l.of(0, 0, 0, 1, 2) {
		add(openaiserver.SearchItem, l.text())
		if l.chance(2) {
			think()
		}
	}
	for range l.of(0, 1, 1, 1, 2) {
		add(openaiserver.TextItem, l.text())
	}
	if l.chance(20) {
		add(openaiserver.RefusalItem, l.text())
	}
	for range l.of(0, 0, 0, 1, 1, 2, 4) {
		if l.chance(3) {
			think()
		}
		items = append(items, openaiserver.Item{Kind: openaiserver.CallItem, Call: l.call(s)})
	}
	if l.chance(20) {
		think()
	}
	return items
}

// call returns a call of a tool, or of none.
func (l *life) call(s *server) openaiserver.Call {
	names := append(toolNames(), "no_such_tool", "functions.local__text", "no such tool!", "é", strings.Repeat("long_", 30), "web_search")
	call := openaiserver.Call{Name: names[l.upTo(len(names))], Arguments: arguments[l.upTo(len(arguments))]}
	l.mu.Lock()
	l.calls++
	n := l.calls
	l.mu.Unlock()
	call.ID = s.callID(n)
	if s.api == chat && l.chance(4) {
		call.Extra = json.RawMessage(fmt.Sprintf(`{"google":{"thought_signature":"c2lnbmVkLWJ5LWdlbWluaS0%d"}}`, 1000+n))
	}
	return call
}

// callID returns the ID of the nth call, of a form that the server has.
func (s *server) callID(n int) string {
	odd := s.life.of(0, 0, 0, 1, 2, 3, 4)
	switch {
	case s.base == mistral:
		return fmt.Sprintf("m%08d", n)
	case s.api == messages && odd == 0:
		return fmt.Sprint("toolu_", n)
	case odd == 1:
		return fmt.Sprintf("call_%035d", n)
	case s.api == responses && odd == 2:
		return fmt.Sprintf("call_%059d", n)
	case s.api == messages && odd == 2, s.api == chat && callIDs[s.base] == nil && odd == 2:
		return fmt.Sprintf("functions.text:%d/é", n)
	case s.api == chat && callIDs[s.base] == nil && odd == 3:
		return fmt.Sprintf("call_%0500d", n)
	case s.api == chat && odd == 4: // the same in each message
		return []string{"", "call_0", "call_1"}[s.life.of(0, 1, 2)]
	}
	return fmt.Sprint("call_", n)
}

// arguments are texts that models write as arguments.
var arguments = []string{
	`{}`, ``, `{"a":1}`, `{"a`, `[]`, `null`, `"text"`, `{"a":"\ud800"}`, `{"a":"<&>\u2028"}`, `{"a": 1.50, "b": [1e400, {"c": null}]}`,
	"{\"a\":\"line\nbreak\"}", `{"a":1}{"b":2}`, ` {"a" : 12345678901234567890 } `, strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40),
}

// text returns a text as people, models and tools write them.
func (l *life) text() string {
	words := []string{"Good morning. ", "é", "🎻", "\"", "\n", " ", "<&>", "\u2028", "\t", "\\", "msg", "\x00", "\ufeff"}
	return strings.Repeat(words[l.of(0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)], l.of(0, 1, 2, 40)) + []string{"", "end", " "}[l.of(0, 1, 2)]
}
