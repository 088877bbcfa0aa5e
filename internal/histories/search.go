// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/transcript"
)

// Search chooses the conversations to find, and how many places of each are shown.
type Search struct {
	Words []string // the conversations contain all of them
	Limit int      // conversations at most; 0 means all
	Hits  int      // places at most in each conversation; 0 means all
}

// FoundList is the JSON output of history search.
type FoundList struct {
	Conversations []Found `json:"conversations"`
}

// Found is a conversation that contains the words.
type Found struct {
	transcript.About
	Hits []Hit `json:"hits"`
	More int   `json:"more_hits,omitempty"`
}

// Hit is a canister that contains some of the words.
type Hit struct {
	Number int       `json:"number"`
	Kind   string    `json:"kind"`
	Tool   string    `json:"tool,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Before string    `json:"before"`
	Match  string    `json:"match"`
	After  string    `json:"after"`

	words int // how many of the words it contains
}

// Search prints the conversations that contain the words, and where: the best places of each,
// which are those with most of the words, in the order of the conversation.
func (m *Manager) Search(ctx context.Context, s Search) error {
	if s.Hits < 0 {
		return exit.Usagef("--hits %d: expected a number of at least 0", s.Hits)
	}
	filter := history.Filter{Text: strings.Join(s.Words, " "), Limit: s.Limit}
	list, unread := m.listed(ctx, filter)
	if len(list) == 0 && unread != nil {
		return unread
	}
	found := FoundList{[]Found{}}
	for i, info := range list {
		one, err := Passages(ctx, m.store, info, filter.Words(), s.Hits, m.redact)
		unread = errors.Join(unread, err)
		if m.to.JSON {
			found.Conversations = append(found.Conversations, one)
			continue
		}
		if i > 0 {
			m.to.Screen.Print("\n")
		}
		m.to.Screen.Print(m.foundText(info, one, filter.Words()))
		if err := m.to.Screen.Err(); err != nil {
			return err
		}
	}
	switch {
	case m.to.JSON:
		return errors.Join(m.to.Screen.PrintDocument(found), unread)
	case len(list) == 0:
		m.to.Screen.Hint("No conversation matches.")
	}
	return unread
}

// Passages reads a conversation and returns the canisters that contain the words: those with
// most of the words, at most most of them unless it is 0.
func Passages(ctx context.Context, log history.Log, info history.Info, words []string, most int, redact func(string) string) (Found, error) {
	found := Found{About: transcript.AboutOf(info), Hits: []Hit{}}
	tools := map[string]string{} // of the invocations of the latest message
	for c, err := range transcript.Canisters(ctx, log, info) {
		if err != nil {
			return found, err
		}
		tool := ""
		switch c := c.Canister.(type) {
		case canister.Assistant:
			clear(tools)
		case canister.Invocation:
			tool, tools[c.ID] = c.Name, c.Name
		case canister.Result:
			tool = tools[c.Invocation]
		}
		// Secrets are removed before the text is cut, because half of one could not be
		// recognized.
		if hit, ok := hitIn(redact(history.TextOf(c.Canister)), words); ok {
			hit.Number, hit.Kind, hit.Tool, hit.Time = c.Number, string(c.Kind()), tool, c.Header().Time.UTC()
			found.Hits = append(found.Hits, hit)
		}
	}
	if most > 0 && len(found.Hits) > most {
		found.More = len(found.Hits) - most
		slices.SortStableFunc(found.Hits, func(a, b Hit) int { return cmp.Compare(b.words, a.words) })
		found.Hits = found.Hits[:most]
		slices.SortFunc(found.Hits, func(a, b Hit) int { return cmp.Compare(a.Number, b.Number) })
	}
	return found, nil
}

// around is how much text of a hit is kept, in columns.
const around = 150

// hitIn returns the place of a text where most of the words stand together, with the text
// around it, which is safe to print.
func hitIn(text string, words []string) (Hit, bool) {
	lower := strings.ToLower(text)
	count := 0
	for _, word := range words {
		if strings.Contains(lower, word) {
			count++
		}
	}
	if count == 0 {
		return Hit{}, false
	}
	line := []rune(display.Line(text))
	start, end := place(line, words)
	before, after := surroundings(line, start, end)
	return Hit{Before: before, Match: string(line[start:end]), After: after, words: count}, true
}

// place returns where the word begins and ends that has most of the others close after it;
// an empty place at the start if no word is found, because invisible characters divide it.
func place(line []rune, words []string) (start, end int) {
	lower := strings.ToLower(string(line)) // has as many characters
	best := 0
	for _, word := range words {
		at := strings.Index(lower, word)
		if at < 0 {
			continue
		}
		near, together := lower[at:min(len(lower), at+around)], 0
		for _, other := range words {
			if strings.Contains(near, other) {
				together++
			}
		}
		if together > best {
			best = together
			start = len([]rune(lower[:at]))
			end = start + len([]rune(word))
		}
	}
	return start, end
}

// surroundings returns the text before and after a part of a line, cut at spaces, and about
// as long as around in total. An ellipsis stands for a part that is cut off.
func surroundings(line []rune, start, end int) (before, after string) {
	room := max(0, around-terminal.Width(string(line[start:end])))
	from := start
	for wide := 0; from > 0; from-- {
		if wide += terminal.Width(string(line[from-1])); wide > room/3 && (line[from-1] == ' ' || wide > room/2) {
			break
		}
	}
	to := end
	for wide := terminal.Width(string(line[from:start])); to < len(line); to++ {
		if wide += terminal.Width(string(line[to])); wide > room && (line[to] == ' ' || wide > room+20) {
			break
		}
	}
	before, after = string(line[from:start]), string(line[end:to])
	if from > 0 {
		before = "…" + strings.TrimLeft(before, " ")
	}
	if to < len(line) {
		after = strings.TrimRight(after, " ") + "…"
	}
	return before, after
}

// foundText renders a conversation and its hits within the columns of the screen.
func (m *Manager) foundText(info history.Info, found Found, words []string) string {
	paint, wide := m.to.Screen.Results, m.to.Screen.ResultColumns()
	var b strings.Builder
	id := display.Line(info.ID)
	for i, line := range terminal.Wrap(strings.TrimSpace(id+" "+about(info)), wide-2) {
		switch rest, isFirst := strings.CutPrefix(line, id); {
		case i == 0 && isFirst:
			b.WriteString(paint.Name(id) + marked(rest, words, paint.Bold) + "\n")
		default:
			b.WriteString("  " + marked(line, words, paint.Bold) + "\n")
		}
	}
	for _, hit := range found.Hits {
		head := fmt.Sprintf("%d %s", hit.Number, hit.Kind)
		if hit.Tool != "" {
			head += " " + display.Line(hit.Tool)
		}
		if !hit.Time.IsZero() {
			head += ", " + transcript.Moment(hit.Time, m.zone)
		}
		for _, line := range terminal.Wrap(head, wide-2) {
			b.WriteString("  " + paint.Faint(line) + "\n")
		}
		for _, line := range terminal.Wrap(hit.Before+hit.Match+hit.After, wide-4) {
			b.WriteString("    " + marked(line, words, paint.Bold) + "\n")
		}
	}
	if found.More > 0 {
		for _, line := range terminal.Wrap(fmt.Sprintf("%d more; see %s", found.More, m.at.CommandLine("history show "+display.Word(info.ID))), wide-2) {
			b.WriteString("  " + paint.Faint(line) + "\n")
		}
	}
	return b.String()
}

// marked returns a line with each of the words painted.
func marked(line string, words []string, paint func(...any) string) string {
	runes := []rune(line)
	lower := []rune(strings.ToLower(line))
	if len(lower) != len(runes) {
		return line
	}
	isHit := make([]bool, len(runes))
	for _, word := range words {
		want := []rune(word)
		for i := 0; i+len(want) <= len(lower); i++ {
			if slices.Equal(lower[i:i+len(want)], want) {
				for j := range want {
					isHit[i+j] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := 0; i < len(runes); {
		end := i + 1
		for end < len(runes) && isHit[end] == isHit[i] {
			end++
		}
		if part := string(runes[i:end]); isHit[i] {
			b.WriteString(paint(part))
		} else {
			b.WriteString(part)
		}
		i = end
	}
	return b.String()
}
