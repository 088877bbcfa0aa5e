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
	"github.com/consort-go/consort/internal/clientcalls"
)

// Bounds of the page of spending.
const (
	spendDays  = 30              // by default
	maxDays    = 366             // of a range
	spendTime  = 3 * time.Second // for looking into conversations
	exportTime = time.Minute     // the same, for an export
	maxSpent   = 5000            // conversations whose costs are added up
	sumsShown  = 100             // of each table
)

// unowned is shown in place of the owner of a conversation that has none.
const unowned = "without an owner"

// account is what spending is added up by. An exchange with a model has no tool, and a call has one.
type account struct{ day, owner, model, tool string }

// amount is a sum of exchanges, their tokens and money, and calls.
type amount struct {
	exchanges, calls      int64
	input, cached, output int64 // tokens
	money                 budget.Money
	unpriced              int64 // exchanges whose cost is not known
}

func (a *amount) tokens() int64 { return a.input + a.output }

func (a *amount) add(b amount) {
	a.exchanges += b.exchanges
	a.calls += b.calls
	a.input += b.input
	a.cached += b.cached
	a.output += b.output
	a.money += b.money
	a.unpriced += b.unpriced
}

// spendQuery says what spending is shown. Names are parts of names, in any case, or whole names in
// quotation marks.
type spendQuery struct {
	from, to         time.Time // days in UTC; both count
	who, model, tool string
	wrong            string // what is wrong with a field
}

func (c recordPages) spendQueryOf(v url.Values) spendQuery {
	q := spendQuery{to: c.console.Now().UTC().Truncate(24 * time.Hour), who: v.Get("who"), model: v.Get("model"), tool: v.Get("tool")}
	day := func(name string, to *time.Time) {
		if text := v.Get(name); text != "" {
			at, err := time.Parse(time.DateOnly, text)
			if err != nil {
				q.wrong = "A day is written as 2026-03-01."
				return
			}
			*to = at
		}
	}
	day("to", &q.to)
	q.from = q.to.AddDate(0, 0, 1-spendDays)
	day("from", &q.from)
	switch days := q.to.Sub(q.from).Hours()/24 + 1; {
	case q.wrong != "":
	case days < 1:
		q.wrong = "The first day is after the last one."
	case days > maxDays:
		q.wrong = fmt.Sprintf("These are %.0f days, and %d at most can be shown. Choose a shorter range.", days, maxDays)
	}
	return q
}

// values returns the query of an address.
func (q spendQuery) values() url.Values {
	v := url.Values{"from": {q.from.Format(time.DateOnly)}, "to": {q.to.Format(time.DateOnly)}}
	for name, value := range map[string]string{"who": q.who, "model": q.model, "tool": q.tool} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// address returns the path of a page with the query.
func (q spendQuery) address(page string) string { return Prefix + page + "?" + q.values().Encode() }

// matches reports whether a filter has a name: a part of it, or the whole name in quotation marks.
func matches(name, part string) bool {
	if whole, is := strings.CutPrefix(part, `"`); is && strings.HasSuffix(whole, `"`) {
		return name == strings.TrimSuffix(whole, `"`)
	}
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// spending are sums over the conversations that a person sees.
type spending struct {
	query         spendQuery
	sums          map[account]*amount
	conversations int
	cut           time.Time // how far back the sums go, if the time was up
	err           error     // about conversations that the person sees, or all
	others        error     // about conversations that are not known to be the person's
}

func (s *spending) add(to account, sum amount) {
	if s.sums[to] == nil {
		s.sums[to] = &amount{}
	}
	s.sums[to].add(sum)
}

// spent adds up what conversations have spent, for as long as there is time.
func (c recordPages) spent(ctx context.Context, p *person, q spendQuery, atMost time.Duration, most int) *spending {
	s := &spending{query: q, sums: map[account]*amount{}}
	if c.console.Store == nil || !p.Role.May(Audit) && p.Owner == "" || q.wrong != "" {
		return s
	}
	filter := history.Filter{Since: q.from}
	if most > 0 {
		filter.Limit = most + 1
	}
	if !p.Role.May(Audit) {
		filter.Owner, s.query.who = p.Owner, ""
	}
	ends, read := c.console.Now().Add(c.console.within(atMost)), 0
	for info, err := range c.console.Store.List(ctx, filter) {
		if err != nil {
			to := &s.err
			if info.ID != "" && !p.sees(info) {
				to = &s.others
			}
			*to = cmp.Or(*to, c.console.unread.hide(ctx, p, err))
			continue
		}
		if most > 0 && read == most || c.console.Now().After(ends) {
			s.cut = info.Changed
			break
		}
		if read++; clientcalls.IsApproval(info) || !matches(cmp.Or(info.Owner, unowned), s.query.who) {
			continue
		}
		isIn, err := c.add(ctx, s, info)
		s.err = cmp.Or(s.err, c.console.unread.hide(ctx, p, err))
		if isIn {
			s.conversations++
		}
	}
	return s
}

// exchange is a message of a model with the calls that the model itself asked for.
type exchange struct {
	message canister.Assistant
	at      time.Time
	tools   []string
}

// add adds up the exchanges of a conversation, and reports whether the query matches any.
func (c recordPages) add(ctx context.Context, s *spending, info history.Info) (isIn bool, err error) {
	one := exchange{}
	// A fork has the canisters of its parent, which spent them.
	for next, err := range c.console.Store.Read(ctx, info.ID, info.ParentLength) {
		if err != nil {
			return isIn, err
		}
		switch e := next.(type) {
		case canister.Assistant:
			isIn = c.book(s, info.Owner, &one) || isIn
			one = exchange{message: e, at: e.Time}
		case canister.Invocation:
			one.at = cmp.Or(one.at, e.Time)
			if e.Parent == "" { // otherwise a program has made the call
				one.tools = append(one.tools, e.Name)
			}
		}
	}
	return c.book(s, info.Owner, &one) || isIn, nil
}

// book adds an exchange to the sums if the query matches it: with a tool, an exchange that called
// the tool. It reports whether there was something to add.
func (c recordPages) book(s *spending, owner string, one *exchange) bool {
	q, name := &s.query, cmp.Or(one.message.Model, "unknown")
	tools := slices.DeleteFunc(one.tools, func(tool string) bool { return !matches(tool, q.tool) })
	if one.at.Before(q.from) || !one.at.Before(q.to.AddDate(0, 0, 1)) || !matches(name, q.model) || q.tool != "" && len(tools) == 0 {
		return false
	}
	to := account{day: one.at.UTC().Format(time.DateOnly), owner: owner, model: name}
	if one.message.ID != "" {
		money, isPriced := c.console.cost(one.message)
		sum := amount{exchanges: 1, money: money}
		if !isPriced {
			sum.unpriced = 1
		}
		if u := one.message.Usage; u != nil {
			sum.input, sum.cached, sum.output = u.Input, u.Cached, u.Output
		}
		s.add(to, sum)
	}
	for _, to.tool = range tools {
		s.add(to, amount{calls: 1})
	}
	return one.message.ID != "" || len(tools) > 0
}

// total is a row of a table of spending.
type total struct {
	name string
	amount
}

// by adds up by a part of the accounts, the largest first. Accounts with an empty part do not count.
func (s *spending) by(part func(account) string) []total {
	sums := map[string]*amount{}
	for of, sum := range s.sums {
		if name := part(of); name != "" {
			if sums[name] == nil {
				sums[name] = &amount{}
			}
			sums[name].add(*sum)
		}
	}
	all := make([]total, 0, len(sums))
	for name, sum := range sums {
		all = append(all, total{name, *sum})
	}
	slices.SortFunc(all, func(a, b total) int {
		return cmp.Or(cmp.Compare(b.money, a.money), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	return all
}

// days returns the sum of each day of the range.
func (s *spending) days() []total {
	sums := map[string]amount{}
	for _, one := range s.by(func(of account) string { return of.day }) {
		sums[one.name] = one.amount
	}
	var all []total
	for day := s.query.from; !day.After(s.query.to); day = day.AddDate(0, 0, 1) {
		name := day.Format(time.DateOnly)
		all = append(all, total{name, sums[name]})
	}
	return all
}

func (c recordPages) spendPage(w http.ResponseWriter, r *http.Request, p *person) {
	q := c.spendQueryOf(r.URL.Query())
	content := el("p", class("notice failed"), attr("role", "alert"), text(q.wrong))
	if q.wrong == "" {
		content = c.spendTables(p, c.spent(r.Context(), p, q, spendTime, maxSpent))
	}
	c.console.show(w, p, "Spend", el("h1", text("Spend")), c.spendForm(p, q), content)
}

// spendForm returns the filter.
func (c recordPages) spendForm(p *person, q spendQuery) part {
	v := q.values()
	return el("form", attr("method", "get"), action(Prefix+"/spend"), class("search"), attr("role", "search"),
		c.console.field("from", "From (UTC)", v.Get("from"), attr("type", "date")), c.console.field("to", "To", v.Get("to"), attr("type", "date")),
		when(p.Role.May(Audit), c.console.field("who", "Identity", q.who)), c.console.field("model", "Model", q.model), c.console.field("tool", "Called tool", q.tool),
		el("button", text("Filter")))
}

// whole returns the filter that only one name matches.
func whole(name string) string { return `"` + name + `"` }

func (c recordPages) spendTables(p *person, s *spending) part {
	q, what := s.query, "Tokens"
	if c.console.isPriced() {
		what = "Tokens and money"
	}
	days, unpriced := s.days(), int64(0)
	for i := range days {
		unpriced += days[i].unpriced
	}
	narrowed := func(change func(*spendQuery, string)) func(string) part {
		return func(name string) part {
			one := q
			change(&one, name)
			return c.console.linked(one.address("/spend"), name)
		}
	}
	plain := func(name string) part { return text(name) }
	return group(
		el("p", text(fmt.Sprintf("%s of %s, in %s. ", what, counted(len(days), "day"), counted(s.conversations, "conversation"))),
			el("a", href(q.address("/spend.csv")), text("Export as CSV")), text(" · "), el("a", href(q.address("/spend.json")), text("Export as JSON"))),
		when(q.tool != "", el("p", class("faint"), text("Only exchanges that called the tool count."))),
		when(!s.cut.IsZero(), el("p", class("notice"), text("There are too many conversations to read at once. The sums have those that changed after "), moment(s.cut), text("."))),
		when(c.console.isPriced() && unpriced > 0, el("p", class("notice"),
			text(fmt.Sprintf("The cost of %s is not known, because the model has no price or reported no tokens. The sums leave it out.", counted(int(unpriced), "exchange"))))),
		c.console.unread.notice(cmp.Or(s.err, s.others)),
		el("section", el("h2", text("By day")), chart(days), details(false, text("As a table"), c.sums("Day", days, plain))),
		when(p.Role.May(Audit), el("section", el("h2", text("By identity")),
			c.sums("Owner", s.by(func(of account) string { return cmp.Or(of.owner, unowned) }), narrowed(func(q *spendQuery, name string) { q.who = whole(name) })))),
		el("section", el("h2", text("By model")),
			c.sums("Model", s.by(func(of account) string { return of.model }), narrowed(func(q *spendQuery, name string) { q.model = whole(name) }))),
		el("section", el("h2", text("By tool")),
			c.sums("Tool", s.by(func(of account) string { return of.tool }), narrowed(func(q *spendQuery, name string) { q.tool = whole(name) }))))
}

// sums returns a table of sums. shown returns the first cell of a row.
func (c recordPages) sums(head string, all []total, shown func(name string) part) part {
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
		cells := []part{shown(all[i].name), text(strconv.FormatInt(all[i].tokens(), 10))}
		if isCalls {
			cells[1] = text(strconv.FormatInt(all[i].calls, 10))
		} else if isPriced {
			cells = append(cells, text(c.console.money(all[i].money)))
		}
		rows = append(rows, row(cells...))
	}
	return group(table("Spending by "+head, heads, rows...),
		when(left > 0, el("p", class("faint"), text(fmt.Sprintf("%d more are in the exports.", left)))))
}
