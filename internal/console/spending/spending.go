// SPDX-License-Identifier: Apache-2.0

// Package spending adds up what stored conversations have spent: tokens, money and calls, by day,
// owner, model and tool.
package spending

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/clientcalls"
)

// Bounds of a query.
const (
	defaultDays = 30
	maxDays     = 366
)

// Unowned stands for the owner of a conversation that has none.
const Unowned = "without an owner"

// Account is what spending is added up by. An exchange with a model has no tool, and a call has one.
type Account struct{ Day, Owner, Model, Tool string }

// Amount is a sum of exchanges, their tokens and money, and calls.
type Amount struct {
	Exchanges, Calls      int64
	Input, Cached, Output int64 // tokens
	Money                 budget.Money
	Unpriced              int64 // exchanges whose cost is not known
}

// Tokens returns the number of tokens.
func (a *Amount) Tokens() int64 { return a.Input + a.Output }

func (a *Amount) add(b Amount) {
	a.Exchanges += b.Exchanges
	a.Calls += b.Calls
	a.Input += b.Input
	a.Cached += b.Cached
	a.Output += b.Output
	a.Money += b.Money
	a.Unpriced += b.Unpriced
}

// Query says what spending counts. Names are parts of names, in any case, or whole names in
// quotation marks.
type Query struct {
	From, To         time.Time // days in UTC; both count
	Who, Model, Tool string
	Wrong            string // a message about a field that is not valid; empty if all are
}

// QueryOf returns the query of an address. Without days, it is about the last 30.
func QueryOf(v url.Values, now time.Time) Query {
	q := Query{To: now.UTC().Truncate(24 * time.Hour), Who: v.Get("who"), Model: v.Get("model"), Tool: v.Get("tool")}
	day := func(name string, to *time.Time) {
		if text := v.Get(name); text != "" {
			at, err := time.Parse(time.DateOnly, text)
			if err != nil {
				q.Wrong = "A day is written as 2026-03-01."
				return
			}
			*to = at
		}
	}
	day("to", &q.To)
	q.From = q.To.AddDate(0, 0, 1-defaultDays)
	day("from", &q.From)
	switch days := q.To.Sub(q.From).Hours()/24 + 1; {
	case q.Wrong != "":
	case days < 1:
		q.Wrong = "The first day is after the last one."
	case days > maxDays:
		q.Wrong = fmt.Sprintf("These are %.0f days, and %d at most can be shown. Choose a shorter range.", days, maxDays)
	}
	return q
}

// Values returns the query of an address.
func (q Query) Values() url.Values {
	v := url.Values{"from": {q.From.Format(time.DateOnly)}, "to": {q.To.Format(time.DateOnly)}}
	for name, value := range map[string]string{"who": q.Who, "model": q.Model, "tool": q.Tool} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// matches reports whether a filter has a name: a part of it, or the whole name in quotation marks.
func matches(name, part string) bool {
	if whole, is := strings.CutPrefix(part, `"`); is && strings.HasSuffix(whole, `"`) {
		return name == strings.TrimSuffix(whole, `"`)
	}
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// Sums are the sums of conversations.
type Sums struct {
	Query         Query
	Accounts      map[Account]*Amount
	Conversations int
	Cut           time.Time // how far back the sums go, if there were too many conversations or the time was up
	Err           error     // about conversations that the person sees, or all
	Others        error     // about conversations that are not known to be the person's
}

func (s *Sums) add(to Account, sum Amount) {
	if s.Accounts[to] == nil {
		s.Accounts[to] = &Amount{}
	}
	s.Accounts[to].add(sum)
}

// Reader reads conversations for a person.
type Reader struct {
	Store history.Store
	Owner string // of the conversations; empty for all
	Most  int    // conversations that are read; 0 for all
	Now   func() time.Time
	// Sees reports whether the person sees a conversation, and Hide returns the part of an error
	// that the person may know.
	Sees func(history.Info) bool
	Hide func(error) error
	// Cost returns the cost of an exchange, if it is known.
	Cost func(canister.Assistant) (budget.Money, bool)
}

// Read adds up what conversations have spent, until a time.
func (r *Reader) Read(ctx context.Context, q Query, ends time.Time) *Sums {
	s := &Sums{Query: q, Accounts: map[Account]*Amount{}}
	filter := history.Filter{Since: q.From, Owner: r.Owner}
	if r.Most > 0 {
		filter.Limit = r.Most + 1
	}
	read := 0
	for info, err := range r.Store.List(ctx, filter) {
		if err != nil {
			to := &s.Err
			if info.ID != "" && !r.Sees(info) {
				to = &s.Others
			}
			*to = cmp.Or(*to, r.Hide(err))
			continue
		}
		if r.Most > 0 && read == r.Most || r.Now().After(ends) {
			s.Cut = info.Changed
			break
		}
		if read++; clientcalls.IsApproval(info) || !matches(cmp.Or(info.Owner, Unowned), q.Who) {
			continue
		}
		isIn, err := r.add(ctx, s, info)
		s.Err = cmp.Or(s.Err, r.Hide(err))
		if isIn {
			s.Conversations++
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
func (r *Reader) add(ctx context.Context, s *Sums, info history.Info) (isIn bool, err error) {
	one := exchange{}
	// A fork has the canisters of its parent, which spent them.
	for next, err := range r.Store.Read(ctx, info.ID, info.ParentLength) {
		if err != nil {
			return isIn, err
		}
		switch e := next.(type) {
		case canister.Assistant:
			isIn = r.book(s, info.Owner, &one) || isIn
			one = exchange{message: e, at: e.Time}
		case canister.Invocation:
			one.at = cmp.Or(one.at, e.Time)
			if e.Parent == "" { // otherwise a program has made the call
				one.tools = append(one.tools, e.Name)
			}
		}
	}
	return r.book(s, info.Owner, &one) || isIn, nil
}

// book adds an exchange to the sums if the query matches it: with a tool, an exchange that called
// the tool. It reports whether there was something to add.
func (r *Reader) book(s *Sums, owner string, one *exchange) bool {
	q, name := &s.Query, cmp.Or(one.message.Model, "unknown")
	tools := slices.DeleteFunc(one.tools, func(tool string) bool { return !matches(tool, q.Tool) })
	if one.at.Before(q.From) || !one.at.Before(q.To.AddDate(0, 0, 1)) || !matches(name, q.Model) || q.Tool != "" && len(tools) == 0 {
		return false
	}
	to := Account{Day: one.at.UTC().Format(time.DateOnly), Owner: owner, Model: name}
	if one.message.ID != "" {
		money, isPriced := r.Cost(one.message)
		sum := Amount{Exchanges: 1, Money: money}
		if !isPriced {
			sum.Unpriced = 1
		}
		if u := one.message.Usage; u != nil {
			sum.Input, sum.Cached, sum.Output = u.Input, u.Cached, u.Output
		}
		s.add(to, sum)
	}
	for _, to.Tool = range tools {
		s.add(to, Amount{Calls: 1})
	}
	return one.message.ID != "" || len(tools) > 0
}

// Total is a row of a table of spending.
type Total struct {
	Name string
	Amount
}

// By adds up by a part of the accounts, the largest first. Accounts with an empty part do not count.
func (s *Sums) By(part func(Account) string) []Total {
	sums := map[string]*Amount{}
	for of, sum := range s.Accounts {
		if name := part(of); name != "" {
			if sums[name] == nil {
				sums[name] = &Amount{}
			}
			sums[name].add(*sum)
		}
	}
	all := make([]Total, 0, len(sums))
	for name, sum := range sums {
		all = append(all, Total{name, *sum})
	}
	slices.SortFunc(all, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Money, a.Money), cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Days returns the sum of each day of the range.
func (s *Sums) Days() []Total {
	sums := map[string]Amount{}
	for _, one := range s.By(func(of Account) string { return of.Day }) {
		sums[one.Name] = one.Amount
	}
	var all []Total
	for day := s.Query.From; !day.After(s.Query.To); day = day.AddDate(0, 0, 1) {
		name := day.Format(time.DateOnly)
		all = append(all, Total{name, sums[name]})
	}
	return all
}
