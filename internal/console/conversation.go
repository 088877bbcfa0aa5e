// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/forked"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/transcript"
)

// windowSize is how many canisters a page of a conversation has. A page that would begin in the middle of a turn
// has more, at most maxWindow, so that it has the calls of its results.
const windowSize, maxWindow = 200, 1000

// window is a part of a conversation.
type window struct {
	from, to  int // the canisters before it, and up to its end
	canisters []canister.Canister
}

// windowOf reads the canisters of a conversation up to a number.
func (c conversationPages) windowOf(ctx context.Context, info history.Info, to int) (window, error) {
	if to <= 0 || to > info.Length {
		to = info.Length
	}
	shown := window{from: max(0, to-windowSize), to: to}
	var err error
	shown.canisters, err = c.read(ctx, info, shown.from, to)
	for err == nil && shown.from > 0 && len(shown.canisters) > 0 && len(shown.canisters) < maxWindow && !beginsCalls(shown.canisters[0]) {
		var before []canister.Canister
		before, err = c.read(ctx, info, max(0, shown.from-windowSize), shown.from)
		for i := len(before) - 1; i >= 0; i-- {
			if beginsCalls(before[i]) {
				before = before[i:]
				break
			}
		}
		shown.from, shown.canisters = shown.from-len(before), append(before, shown.canisters...)
	}
	return shown, err
}

// read returns the canisters of a conversation that follow the first from ones, up to a number.
func (c conversationPages) read(ctx context.Context, info history.Info, from, to int) (all []canister.Canister, err error) {
	for one, err := range c.console.Store.Read(ctx, info.ID, from) {
		if err != nil {
			return nil, err
		}
		if all = append(all, one); from+len(all) == to {
			break
		}
	}
	return all, nil
}

// entries groups canisters that follow the first from ones of a conversation.
func entries(from int, canisters []canister.Canister) []transcript.Entry {
	var all []transcript.Entry
	numbered := func(yield func(transcript.Numbered, error) bool) {
		for i, one := range canisters {
			if !yield(transcript.Numbered{Number: from + i + 1, Canister: one}, nil) {
				return
			}
		}
	}
	for entry := range transcript.Entries(numbered) { // numbered yields no error
		all = append(all, entry)
	}
	return all
}

func (c conversationPages) conversationPage(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	c.recordReading(r, p, info)
	to, _ := strconv.Atoi(r.URL.Query().Get("to")) // an invalid number is like none
	shown, err := c.windowOf(r.Context(), info, to)
	if err != nil {
		c.console.fail(w, r, c.console.unread.hide(r.Context(), p, err))
		return
	}
	ended, with := shown.to == info.Length, c.console.clean.writtenIn(r)
	title := cmp.Or(info.Title, info.ID)
	at := pathOf(info.ID)
	c.console.show(w, r, p, c.console.Redact(title),
		el("h1", text(c.console.Redact(title)), el("span", id("badges"), badges(info))),
		c.facts(p, info, shown),
		when(shown.from > 0, el("p", el("a", id("earlier"), href(fmt.Sprintf("%s?to=%d", at, shown.from)), text("Earlier canisters")))),
		el("ol", id("timeline"), class("timeline"), when(ended, attr("data-live", fmt.Sprintf("%s/live?after=%d&%s=%s", at, shown.to, formID, url.QueryEscape(with.id)))), c.timeline(p, info, shown)),
		when(!ended, el("p", el("a", href(fmt.Sprintf("%s?to=%d", at, min(shown.to+windowSize, info.Length))), text("Later canisters")))),
		el("p", id("live-status"), class("faint"), attr("role", "status")),
		when(ended, el("div", id("waits"), c.openWaits(r.Context(), p, info, shown))),
		when(ended, el("div", id("actions"), c.actions(p, info, with))))
}

func (c conversationPages) timeline(p *person, info history.Info, shown window) part {
	return group(c.items(p, info, entries(shown.from, shown.canisters), "")...)
}

// facts returns the times of a conversation, its origin, and the sum of what the canisters of
// a page cost.
func (c conversationPages) facts(p *person, info history.Info, shown window) part {
	var usage canister.Usage
	var spent budget.Money
	priced := false
	for _, one := range shown.canisters {
		if a, ok := one.(canister.Assistant); ok && a.Usage != nil {
			usage = usage.Add(*a.Usage)
			money, ok := c.console.cost(a)
			spent, priced = spent+money, priced || ok
		}
	}
	traces := c.console.traceLink(info, "", "traces")
	counts := fmt.Sprintf(" (canisters %d to %d)", min(shown.from+1, shown.to), shown.to) // the page may get more
	return el("dl", class("facts"),
		el("dt", text("ID")), el("dd", el("code", text(info.ID))),
		when(info.Owner != "" && p.Role.May(Audit), el("dt", text("Owner")), el("dd", c.ownerLink(info.Owner))),
		el("dt", text("Created")), el("dd", moment(info.Created)),
		el("dt", text("Changed")), el("dd", moment(info.Changed)),
		el("dt", text("Canisters")), el("dd", c.rangeOf(info, shown), text(" · "),
			el("a", href(pathOf(info.ID)+"/raw"), text("raw JSON")), when(traces != nil, text(" · "), traces)),
		when(info.Parent != "", el("dt", text("Forked from")), el("dd", el("a", when(!strings.HasPrefix(info.Parent, forked.Imported), href(pathOf(info.Parent))), text(info.Parent)), text(fmt.Sprintf(" at %d", info.ParentLength)))),
		when(usage.Total() > 0, el("dt", text("Tokens")), el("dd", text(fmt.Sprintf("%d in, %d out%s", usage.Input, usage.Output, counts)))),
		when(priced, el("dt", text("Cost")), el("dd", text(c.console.money(spent)+counts))))
}

// rangeOf says which canisters a page has. The page of the last ones may get more.
func (c conversationPages) rangeOf(info history.Info, shown window) part {
	if shown.to == info.Length {
		return el("span", id("length"), text(strconv.Itoa(info.Length)))
	}
	return text(fmt.Sprintf("%d to %d of %d", min(shown.from+1, shown.to), shown.to, info.Length))
}

// money returns an amount with its currency.
func (c *Console) money(m budget.Money) string {
	if policy := c.policy(); policy != nil && policy.Currency != "" {
		return m.String() + " " + policy.Currency
	}
	return m.String()
}

// openWaits returns the forms for the waits at the end of a conversation. If the message of the model
// that made the calls is before the page, it reads back to that message.
func (c conversationPages) openWaits(ctx context.Context, p *person, info history.Info, shown window) part {
	end := unfinished{Info: info, canisters: shown.canisters, open: waits.Open(info.ID, shown.canisters, c.console.Now())}
	if shown.from > 0 && !slices.ContainsFunc(shown.canisters, isFromModel) {
		if err := c.console.readEnd(ctx, &end); err != nil {
			return el("p", class("notice failed"), text("What waits for an answer cannot be read. "+c.console.clean.errorText(err)))
		}
	}
	if len(end.open) == 0 {
		return nil
	}
	var items []part
	for _, wait := range end.open {
		items = append(items, waitPages(c).waitItem(ctx, p, &end, wait, nil))
	}
	return el("section", el("h2", text("Waiting")), group(items...))
}

// raw sends the canisters of a conversation as lines of JSON.
func (c conversationPages) raw(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	end, ok := recordPages(c).openExport(w, r, p)
	if !ok {
		return
	}
	defer end()
	if !p.owns(info) {
		c.console.record(r, p, "export_conversation", info.ID, nil)
	}
	w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="conversation.jsonl"`)
	for one, err := range c.console.Store.Read(r.Context(), info.ID, 0) {
		if err != nil {
			panic(http.ErrAbortHandler) // the response must not look complete
		}
		if contents := canister.ContentOf(one); contents != nil {
			one = canister.WithContent(one, redact.Contents(contents, c.console.Redact)) // also bytes, which are encoded below
		}
		line, err := canister.Marshal(one)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write([]byte(c.console.clean.redactJSON(string(line)) + "\n")); err != nil {
			return
		}
	}
}

// short returns a duration for people.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
