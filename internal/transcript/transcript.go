// SPDX-License-Identifier: Apache-2.0

// Package transcript shows stored conversations to people: their canisters and their
// data as texts, calls together with their results, and their data as JSON.
package transcript

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
)

// Numbered is a canister and its place in the conversation, from 1.
type Numbered struct {
	Number int
	canister.Canister
}

// Canisters yields the canisters that a conversation had when info was read, and not
// later ones. If it has fewer now, because it was deleted meanwhile, an error that has
// [history.ErrNotFound] in its chain ends the sequence.
func Canisters(ctx context.Context, store history.Log, info history.Info) iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		n := 0
		for c, err := range store.Read(ctx, info.ID, 0) {
			if err != nil {
				yield(Numbered{}, err)
				return
			}
			if n == info.Length {
				return
			}
			if n++; !yield(Numbered{n, c}, nil) {
				return
			}
		}
		if n < info.Length {
			yield(Numbered{}, fmt.Errorf("conversation %q had %d canisters, but only %d could be read: it was deleted meanwhile: %w", info.ID, info.Length, n, history.ErrNotFound))
		}
	}
}

// Part is a canister in a form for display. Its texts are unchanged: they may contain
// markup and terminal control sequences.
type Part struct {
	Number int // from 1
	Kind   canister.Kind
	About  string // the name of a tool, the title of a document, the code of a failure, and so on; may be empty
	Time   time.Time
	Text   string
}

// PartOf returns the display form of a canister, with its times in a zone.
func PartOf(c Numbered, zone *time.Location) Part {
	p := Part{Number: c.Number, Kind: c.Kind(), Text: display.Contents(canister.ContentOf(c.Canister))}
	if at := c.Header().Time; !at.IsZero() {
		p.Time = at.In(zone)
	}
	switch c := c.Canister.(type) {
	case canister.Document:
		p.About = c.Title
	case canister.Invocation:
		p.About, p.Text = c.Name, display.JSON([]byte(c.Arguments))
	case canister.Result:
		p.About = c.Code
	case canister.Intent:
		p.About, p.Text = fmt.Sprintf("attempt %d", c.Attempt), display.JSON([]byte(c.Arguments))
	case canister.Wait:
		p.About = fmt.Sprintf("for %s until %s", c.For, Moment(c.Deadline, zone))
		p.Text = display.JSON([]byte(cmp.Or(c.Arguments, string(c.Question))))
	case canister.Answer:
		p.About = strings.TrimSpace(string(c.Verdict) + " by " + c.By)
		p.Text = joined(c.Reason, display.JSON(c.Arguments), p.Text)
	case canister.User, canister.Assistant, canister.Supervisor: // the content says it all
	}
	return p
}

// joined joins the texts that are not empty with newlines.
func joined(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n")
}

// Heading returns the kind and About in one line that is safe to print on a terminal.
func (p Part) Heading() string {
	return strings.TrimSpace(string(p.Kind) + " " + display.Line(p.About))
}

// When returns the formatted time, or "" if it is unknown.
func (p Part) When() string {
	if p.Time.IsZero() {
		return ""
	}
	return Moment(p.Time, p.Time.Location())
}

// Moment formats a time for people: in a zone, which it names.
func Moment(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("2006-01-02 15:04:05 MST")
}

// Facts returns the times, the owner and the parent of a conversation, in lines that are safe
// to print on a terminal.
func Facts(info history.Info, zone *time.Location) []string {
	facts := []string{fmt.Sprintf("created %s, changed %s", Moment(info.Created, zone), Moment(info.Changed, zone))}
	if info.Owner != "" {
		facts = append(facts, "owner "+display.Line(info.Owner))
	}
	if info.Parent != "" {
		facts = append(facts, fmt.Sprintf("forked from %s at %d", display.Line(info.Parent), info.ParentLength))
	}
	return facts
}

// Title returns the title of a conversation, or its identity if it has no title.
func Title(info history.Info) string { return cmp.Or(display.Line(info.Title), display.Line(info.ID)) }
