// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/consort-go/consort/internal/console/spending"
	"github.com/consort-go/consort/internal/display"
)

// Bounds of the page of spending.
const (
	spendTime  = 3 * time.Second // for looking into conversations
	exportTime = time.Minute     // the same, for an export
	maxSpent   = 5000            // conversations whose costs are added up
	sumsShown  = 100             // of each table
)

// spendAddress returns the path of a page with a query.
func spendAddress(q spending.Query, page string) string {
	return Prefix + page + "?" + q.Values().Encode()
}

// spent adds up what conversations that a person sees have spent, for as long as there is time.
func (c recordPages) spent(ctx context.Context, p *person, q spending.Query, atMost time.Duration, most int) *spending.Sums {
	reader := &spending.Reader{Store: c.console.Store, Most: most, Now: c.console.Now, Sees: p.sees, Cost: c.console.cost,
		Hide: func(err error) error { return c.console.unread.hide(ctx, p, err) }}
	if !p.Role.May(Audit) {
		reader.Owner, q.Who = p.Owner, ""
	}
	if c.console.Store == nil || !p.Role.May(Audit) && p.Owner == "" || q.Wrong != "" {
		return &spending.Sums{Query: q}
	}
	return reader.Read(ctx, q, c.console.Now().Add(c.console.within(atMost)))
}

func (c recordPages) spendPage(w http.ResponseWriter, r *http.Request, p *person) {
	q := spending.QueryOf(r.URL.Query(), c.console.Now())
	content := el("p", class("notice failed"), attr("role", "alert"), text(q.Wrong))
	if q.Wrong == "" {
		content = c.spendTables(p, c.spent(r.Context(), p, q, spendTime, maxSpent))
	}
	c.console.show(w, r, p, "Spend", el("h1", text("Spend")), c.spendForm(p, q), content)
}

// spendForm returns the filter.
func (c recordPages) spendForm(p *person, q spending.Query) part {
	v := q.Values()
	return el("form", attr("method", "get"), action(Prefix+"/spend"), class("search"), attr("role", "search"),
		c.console.field("from", "From (UTC)", v.Get("from"), attr("type", "date")), c.console.field("to", "To", v.Get("to"), attr("type", "date")),
		when(p.Role.May(Audit), c.console.field("who", "Identity", q.Who)), c.console.field("model", "Model", q.Model), c.console.field("tool", "Called tool", q.Tool),
		el("button", text("Filter")))
}

// whole returns the filter that only one name matches.
func whole(name string) string { return `"` + name + `"` }

func (c recordPages) spendTables(p *person, s *spending.Sums) part {
	q, what := s.Query, "Tokens"
	if c.console.isPriced() {
		what = "Tokens and money"
	}
	days, unpriced := s.Days(), int64(0)
	for i := range days {
		unpriced += days[i].Unpriced
	}
	narrowed := func(change func(*spending.Query, string)) func(string) part {
		return func(name string) part {
			one := q
			change(&one, name)
			return c.console.linked(spendAddress(one, "/spend"), name)
		}
	}
	plain := func(name string) part { return text(name) }
	return group(
		el("p", text(fmt.Sprintf("%s of %s, in %s. ", what, display.Count(len(days), "day"), display.Count(s.Conversations, "conversation"))),
			el("a", href(spendAddress(q, "/spend.csv")), text("Export as CSV")), text(" · "), el("a", href(spendAddress(q, "/spend.json")), text("Export as JSON"))),
		when(q.Tool != "", el("p", class("faint"), text("Only exchanges that called the tool count."))),
		when(!s.Cut.IsZero(), el("p", class("notice"), text("There are too many conversations to read at once. The sums have those that changed after "), moment(s.Cut), text("."))),
		when(c.console.isPriced() && unpriced > 0, el("p", class("notice"),
			text(fmt.Sprintf("The cost of %s is not known, because the model has no price or reported no tokens. The sums leave it out.", display.Count(int(unpriced), "exchange"))))),
		c.console.unread.notice(cmp.Or(s.Err, s.Others)),
		el("section", el("h2", text("By day")), chart(days), details(false, text("As a table"), c.sums("Day", days, plain))),
		when(p.Role.May(Audit), el("section", el("h2", text("By identity")),
			c.sums("Owner", s.By(func(of spending.Account) string { return cmp.Or(of.Owner, spending.Unowned) }), narrowed(func(q *spending.Query, name string) { q.Who = whole(name) })))),
		el("section", el("h2", text("By model")),
			c.sums("Model", s.By(func(of spending.Account) string { return of.Model }), narrowed(func(q *spending.Query, name string) { q.Model = whole(name) }))),
		el("section", el("h2", text("By tool")),
			c.sums("Tool", s.By(func(of spending.Account) string { return of.Tool }), narrowed(func(q *spending.Query, name string) { q.Tool = whole(name) }))))
}

// sums returns a table of sums. shown returns the first cell of a row.
func (c recordPages) sums(head string, all []spending.Total, shown func(name string) part) part {
	if len(all) == 0 {
		return el("p", text("Nothing was spent."))
	}
	isCalls, isPriced := head == "Tool", c.console.isPriced()
	heads := []string{head, "Tokens", "Money"}
	switch {
	case isCalls:
		heads = []string{head, "Calls"}
	case !isPriced:
		heads = []string{head, "Tokens"}
	}
	left := 0
	if head != "Day" && len(all) > sumsShown {
		left, all = len(all)-sumsShown, all[:sumsShown]
	}
	var rows []part
	for i := range all {
		cells := []part{shown(all[i].Name), text(strconv.FormatInt(all[i].Tokens(), 10))}
		if isCalls {
			cells[1] = text(strconv.FormatInt(all[i].Calls, 10))
		} else if isPriced {
			cells = append(cells, text(c.console.money(all[i].Money)))
		}
		rows = append(rows, row(cells...))
	}
	return group(table("Spending by "+head, heads, rows...),
		when(left > 0, el("p", class("faint"), text(fmt.Sprintf("%d more are in the exports.", left)))))
}
