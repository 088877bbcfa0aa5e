// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/shown"
)

// Placed is a canister and its place in the conversation, from 1.
type Placed struct {
	Place int
	canister.Canister
}

// Canisters yields the canisters that a conversation had when info was asked
// for, and not those that came behind. If it has fewer now, since it was deleted
// meanwhile, an error ends the sequence.
func Canisters(ctx context.Context, store history.Log, info history.Info) iter.Seq2[Placed, error] {
	return func(yield func(Placed, error) bool) {
		n := 0
		for c, err := range store.Read(ctx, info.ID, 0) {
			if err != nil {
				yield(Placed{}, err)
				return
			}
			if n == info.Length {
				return
			}
			if n++; !yield(Placed{n, c}, nil) {
				return
			}
		}
		if n < info.Length {
			yield(Placed{}, fmt.Errorf("bundle: conversation %q had %d canisters, and %d could be read: it was deleted meanwhile", info.ID, info.Length, n))
		}
	}
}

// Part is a canister as people read it. Its texts are as somebody said them:
// they may hold markup, and what does something to a terminal.
type Part struct {
	Place int // from 1
	Kind  canister.Kind
	About string // such as the name of a tool, the title of a document or the code of a failure; may be empty
	Time  time.Time
	Text  string
}

// PartOf returns a canister as people read it.
func PartOf(c Placed) Part {
	p := Part{Place: c.Place, Kind: c.Kind(), Time: c.Header().Time, Text: shown.Contents(canister.ContentOf(c.Canister))}
	switch c := c.Canister.(type) {
	case canister.Document:
		p.About = c.Title
	case canister.Invocation:
		p.About, p.Text = c.Name, shown.JSON([]byte(c.Arguments))
	case canister.Result:
		p.About = c.Code
	case canister.Intent:
		p.About, p.Text = fmt.Sprintf("attempt %d", c.Attempt), shown.JSON([]byte(c.Arguments))
	case canister.Wait:
		p.About = fmt.Sprintf("%s until %s", c.For, moment(c.Deadline))
		p.Text = shown.JSON([]byte(cmp.Or(c.Arguments, string(c.Question))))
	case canister.Answer:
		p.About = strings.TrimSpace(string(c.Verdict) + " by " + c.By)
		p.Text = joined(c.Reason, shown.JSON(c.Arguments), p.Text)
	}
	return p
}

// joined are the texts that are not empty, below one another.
func joined(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n")
}

// Heading is the kind and what it is about, in one line that a terminal can
// show.
func (p Part) Heading() string {
	return strings.TrimSpace(string(p.Kind) + " " + shown.Line(p.About))
}

// When is the time for people, or empty where nobody knows it.
func (p Part) When() string {
	if p.Time.IsZero() {
		return ""
	}
	return moment(p.Time)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

// Facts are what is known of a conversation beside its title, in lines that a
// terminal can show.
func Facts(info history.Info) []string {
	facts := []string{fmt.Sprintf("created %s, changed %s, %d canisters", moment(info.Created), moment(info.Changed), info.Length)}
	if info.Owner != "" {
		facts = append(facts, "owner "+shown.Line(info.Owner))
	}
	if info.Parent != "" {
		facts = append(facts, fmt.Sprintf("forked from %s at %d", shown.Line(info.Parent), info.ParentLength))
	}
	return facts
}

// titled is what a conversation is called.
func titled(info history.Info) string { return cmp.Or(shown.Line(info.Title), shown.Line(info.ID)) }
