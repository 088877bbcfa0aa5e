// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"golang.org/x/net/html"
)

// spendDays is how many days the page of spending looks back.
const spendDays = 30

// spendTime bounds how long it may look into conversations.
const spendTime = 3 * time.Second

// maxSpent bounds the conversations whose costs are added up.
const maxSpent = 5000

// amount is a sum of tokens, money and calls.
type amount struct {
	tokens, calls int64
	money         budget.Money
}

// spending are sums over the conversations that a person sees.
type spending struct {
	days, owners, models, tools map[string]*amount
	conversations               int
	cut                         time.Time // how far back the sums go, if the time was up
	err                         error
}

func addTo(sums map[string]*amount, key string, tokens, calls int64, money budget.Money) {
	if sums[key] == nil {
		sums[key] = &amount{}
	}
	sums[key].tokens += tokens
	sums[key].calls += calls
	sums[key].money += money
}

// spent adds up what conversations have spent since a time.
func (c recordPages) spent(ctx context.Context, p *person, since time.Time) *spending {
	s := &spending{days: map[string]*amount{}, owners: map[string]*amount{}, models: map[string]*amount{}, tools: map[string]*amount{}}
	if c.console.Store == nil || !p.Role.May(Audit) && p.Owner == "" {
		return s
	}
	filter := history.Filter{Since: since, Limit: maxSpent}
	if !p.Role.May(Audit) {
		filter.Owner = p.Owner
	}
	ends := c.console.Now().Add(c.console.within(spendTime))
	for info, err := range c.console.Store.List(ctx, filter) {
		if err != nil {
			s.err = err
			continue
		}
		if c.console.Now().After(ends) {
			s.cut = info.Changed
			break
		}
		s.conversations++
		if err := c.add(ctx, s, info, since); err != nil {
			s.err = err
		}
	}
	return s
}

func (c recordPages) add(ctx context.Context, s *spending, info history.Info, since time.Time) error {
	// A fork has the canisters of its parent, which spent them.
	for one, err := range c.console.Store.Read(ctx, info.ID, info.ParentLength) {
		if err != nil {
			return err
		}
		at := one.Header().Time
		if at.Before(since) {
			continue
		}
		switch e := one.(type) {
		case canister.Assistant:
			money, _ := c.console.cost(e)
			var tokens int64
			if e.Usage != nil {
				tokens = e.Usage.Total()
			}
			addTo(s.days, at.UTC().Format(time.DateOnly), tokens, 0, money)
			addTo(s.owners, cmp.Or(info.Owner, "without an owner"), tokens, 0, money)
			addTo(s.models, cmp.Or(e.Model, "unknown"), tokens, 0, money)
		case canister.Invocation:
			addTo(s.tools, e.Name, 0, 1, 0)
		}
	}
	return nil
}

func (c recordPages) spendPage(w http.ResponseWriter, r *http.Request, p *person) {
	now := c.console.Now().UTC()
	since := now.Truncate(24*time.Hour).AddDate(0, 0, -spendDays+1)
	s := c.spent(r.Context(), p, since)
	for day := since; !day.After(now); day = day.AddDate(0, 0, 1) {
		addTo(s.days, day.Format(time.DateOnly), 0, 0, 0)
	}
	what := "Tokens"
	if c.console.isPriced() {
		what = "Tokens and money"
	}
	c.console.show(w, p, "Spend",
		el("h1", text("Spend")),
		el("p", text(fmt.Sprintf("%s of the last %d days, in %d conversations that changed.", what, spendDays, s.conversations))),
		when(!s.cut.IsZero(), el("p", class("notice"), text("There are too many conversations to read at once. The sums have those that changed after "), moment(s.cut), text("."))),
		when(s.err != nil, el("p", class("notice failed"), text("Some conversations cannot be read. "+c.console.redacted(s.err)))),
		el("section", el("h2", text("By day")), chart(s.days), details(false, text("As a table"), c.sums("Day", s.days, true))),
		when(p.Role.May(Audit), el("section", el("h2", text("By identity")), c.sums("Owner", s.owners, false))),
		el("section", el("h2", text("By model")), c.sums("Model", s.models, false)),
		el("section", el("h2", text("By tool")), c.sums("Tool", s.tools, false)))
}

// sums returns sums as a table: by name, or the largest first.
func (c recordPages) sums(head string, sums map[string]*amount, byName bool) part {
	names := slices.Sorted(maps.Keys(sums))
	if !byName {
		slices.SortStableFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(sums[b].money, sums[a].money), cmp.Compare(sums[b].tokens, sums[a].tokens), cmp.Compare(sums[b].calls, sums[a].calls))
		})
	}
	if len(names) == 0 {
		return el("p", text("Nothing was spent."))
	}
	isCalls := head == "Tool"
	heads := []string{head, "Tokens", "Money"}
	isPriced := c.console.isPriced()
	switch {
	case isCalls:
		heads = []string{head, "Calls"}
	case !isPriced:
		heads = []string{head, "Tokens"}
	}
	var rows []part
	for _, name := range names {
		sum := sums[name]
		if isCalls {
			rows = append(rows, row(text(c.console.Redact(name)), text(strconv.FormatInt(sum.calls, 10))))
			continue
		}
		cells := []part{text(c.console.Redact(name)), text(strconv.FormatInt(sum.tokens, 10))}
		if isPriced {
			cells = append(cells, text(c.console.money(sum.money)))
		}
		rows = append(rows, row(cells...))
	}
	return table("Spending by "+head, heads, rows...)
}

// The size of a chart, in units of its view box.
const (
	chartHeight = 120
	barWidth    = 20
)

// svg returns an element of an image.
func svg(tag string, parts ...part) part {
	return func(parent *html.Node) {
		node := &html.Node{Type: html.ElementNode, Data: tag, Namespace: "svg"}
		group(parts...)(node)
		parent.AppendChild(node)
	}
}

// chart returns the tokens of each day as bars.
func chart(days map[string]*amount) part {
	names := slices.Sorted(maps.Keys(days))
	var most int64 = 1
	for _, day := range days {
		most = max(most, day.tokens)
	}
	var bars []part
	for i, name := range names {
		height := int(days[name].tokens * chartHeight / most)
		bars = append(bars, svg("rect", attr("x", strconv.Itoa(i*barWidth+2)), attr("y", strconv.Itoa(chartHeight-height)),
			attr("width", strconv.Itoa(barWidth-4)), attr("height", strconv.Itoa(height)), class("bar"),
			svg("title", text(fmt.Sprintf("%s: %d tokens", name, days[name].tokens)))))
	}
	if len(names) > 0 {
		at := strconv.Itoa(chartHeight + 16)
		bars = append(bars, svg("text", attr("x", "0"), attr("y", at), text(names[0])),
			svg("text", attr("x", strconv.Itoa(len(names)*barWidth)), attr("y", at), attr("text-anchor", "end"), text(names[len(names)-1])))
	}
	return svg("svg", attr("viewBox", fmt.Sprintf("0 0 %d %d", max(1, len(names))*barWidth, chartHeight+20)), attr("role", "img"),
		attr("aria-label", fmt.Sprintf("Tokens by day; at most %d in a day", most)), class("chart"), group(bars...))
}
