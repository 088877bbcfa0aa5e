// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/listpage"
)

// Bounds of a list of conversations. A search that needs more time continues on another page.
const (
	pageSize  = 50
	batchSize = 300 // conversations that are searched at a time
	hitsShown = 2   // of each conversation
)

// The time that the parts of a page may take, unless [Options].Patience is set: most searches
// end before.
const (
	wordTime = 400 * time.Millisecond // for words in all conversations, and then for looking into some
	scanTime = 60 * time.Millisecond  // for batches, and then for passages
	openTime = time.Second            // for unfinished conversations: a busy machine must not hide what waits
)

// within returns the time that a part of a page may take.
func (c *Console) within(usual time.Duration) time.Duration { return cmp.Or(c.Patience, usual) }

// query says which conversations a list has.
type query struct {
	text, owner, tag, tool, cost string
	failed, open                 bool
	before                       listpage.Place
	further                      bool   // the search was cut off before
	wrong                        string // what is wrong with a field
	least                        budget.Money
}

func queryOf(r *http.Request) query {
	v := r.URL.Query()
	q := query{text: v.Get("q"), owner: v.Get("owner"), tag: v.Get("tag"), tool: v.Get("tool"), cost: v.Get("cost"),
		failed: v.Get("failed") != "", open: v.Get("open") != "", further: v.Get("further") != ""}
	q.before.Changed, _ = time.Parse(time.RFC3339Nano, v.Get("before")) // an invalid one is like none
	q.before.ID = v.Get("after")
	if q.cost != "" {
		var err error
		if q.least, err = budget.ParseMoney(q.cost); err != nil {
			q.wrong = "The cost is not an amount, such as 0.25."
		}
	}
	return q
}

// address returns the path of the list.
func (q query) address() string {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.text, "owner": q.owner, "tag": q.tag, "tool": q.tool, "cost": q.cost, "after": q.before.ID} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, on := range map[string]bool{"failed": q.failed, "open": q.open, "further": q.further} {
		if on {
			v.Set(name, "1")
		}
	}
	if !q.before.IsZero() {
		v.Set("before", q.before.Changed.UTC().Format(time.RFC3339Nano))
	}
	return Prefix + "/conversations?" + v.Encode()
}

// looks reports whether a list must look into conversations.
func (q query) looks() bool { return q.tool != "" || q.failed || q.least > 0 }

// listed is one conversation of a list.
type listed struct {
	history.Info
	hits []histories.Hit
}

// found is a part of a list.
type found struct {
	list []listed
	next listpage.Place // where the list continues; zero at its end
	cut  bool           // the time was up before the page was full
	err  error          // about conversations that cannot be read
}

// find returns the conversations of a query that a person may see.
func (c conversationPages) find(ctx context.Context, p *person, q query) (f found) {
	filter := history.Filter{Text: q.text, Owner: q.owner, Open: q.open}
	if q.tag != "" {
		filter.Tags = []string{q.tag}
	}
	if !p.Role.May(Audit) {
		filter.Owner = p.Owner
	}
	if c.console.Store == nil || q.wrong != "" || !p.Role.May(Audit) && p.Owner == "" {
		return f
	}
	filter.Text = strings.TrimSpace(filter.Text + " " + q.tool) // of calls
	s := &search{console: c.console, filter: filter, at: q.before, inBatches: q.further || filter.Text == ""}
	ends := c.console.Now().Add(c.console.within(scanTime))
	if q.looks() {
		ends = c.console.Now().Add(c.console.within(wordTime))
	}
	for isFull := false; !isFull && !f.cut && !s.isDone && ctx.Err() == nil; {
		batch := s.next(ctx)
		f.next = s.at
		for i, info := range batch {
			hits, ok, err := c.look(ctx, info, q)
			if s.err = cmp.Or(s.err, err); ok {
				f.list = append(f.list, listed{info, hits})
			}
			isFull = len(f.list) == pageSize
			if f.cut = !isFull && q.looks() && c.console.Now().After(ends); isFull || f.cut {
				f.next, s.isDone = listpage.After(info), s.isDone && i == len(batch)-1
				break
			}
		}
		f.cut = f.cut || !isFull && !s.isDone && c.console.Now().After(ends)
	}
	if f.err = c.console.unread.hide(ctx, p, s.err); s.isDone && !f.cut {
		f.next = listpage.Place{}
	}
	c.addPassages(ctx, f.list, (history.Filter{Text: q.text}).Words())
	return f
}

// search reads the conversations that match a filter, in parts.
type search struct {
	console   *Console
	filter    history.Filter
	at        listpage.Place
	inBatches bool // the words are looked for in some conversations at a time
	isDone    bool
	err       error
}

// next returns the next conversations, at most batchSize, and moves on. The words are looked
// for in all conversations at first, for as long as that is quick.
func (s *search) next(ctx context.Context) []history.Info {
	if !s.inBatches {
		bounded, cancel := context.WithTimeout(ctx, s.console.within(wordTime))
		list, isLast, err := listpage.Read(bounded, s.console.Store, s.filter, s.at, pageSize, nil)
		cancel()
		if bounded.Err() == nil {
			s.move(list, isLast, err)
			return list
		}
		s.inBatches = true
	}
	filter := s.filter
	filter.Text = ""
	size := batchSize
	if s.filter.Text == "" {
		size = pageSize
	}
	batch, isLast, err := listpage.Read(ctx, s.console.Store, filter, s.at, size, nil)
	list := batch
	if s.filter.Text != "" && len(batch) > 0 {
		list = s.having(ctx, batch)
	}
	s.move(batch, isLast, err)
	return list
}

// move sets the place where the next read begins: after the conversations that were read.
func (s *search) move(list []history.Info, isLast bool, err error) {
	if err != nil {
		s.err = err
	}
	if s.isDone = isLast; len(list) > 0 {
		s.at = listpage.After(list[len(list)-1])
	}
}

// having returns those conversations of a batch that have the words. The times of the batch can
// also match conversations outside of it, which are left out.
func (s *search) having(ctx context.Context, batch []history.Info) (list []history.Info) {
	filter := s.filter
	filter.Since, filter.Until = batch[len(batch)-1].Changed, batch[0].Changed.Add(1)
	for filter.Limit = len(batch); ; filter.Limit *= 4 {
		all := 0
		list = nil
		for info, err := range s.console.Store.List(ctx, filter) {
			if all++; err != nil {
				s.err = err
			} else if slices.ContainsFunc(batch, func(one history.Info) bool { return one.ID == info.ID }) {
				list = append(list, info)
			}
		}
		if all < filter.Limit || len(list) == len(batch) || ctx.Err() != nil {
			return list
		}
	}
}

// look reports whether a conversation has a call of the tool, a failed call and the cost of a
// query, and where.
func (c conversationPages) look(ctx context.Context, info history.Info, q query) (hits []histories.Hit, ok bool, err error) {
	if !q.looks() {
		return nil, true, nil
	}
	names, called, spent := map[string]string{}, q.tool == "" && !q.failed, budget.Money(0)
	number := 0
	for one, err := range c.console.Store.Read(ctx, info.ID, 0) {
		if err != nil {
			return nil, false, err
		}
		number++
		hit := histories.Hit{Number: number, Kind: string(one.Kind())}
		switch e := one.(type) {
		case canister.Assistant:
			money, _ := c.console.cost(e)
			spent += money
			continue
		case canister.Invocation:
			names[e.ID] = e.Name
			if hit.Match = e.Name; q.failed || !strings.Contains(strings.ToLower(e.Name), strings.ToLower(q.tool)) {
				continue
			}
		case canister.Result:
			hit.Tool, hit.Match = names[e.Invocation], e.Code
			if !q.failed || !e.Failed() || !strings.Contains(strings.ToLower(hit.Tool), strings.ToLower(q.tool)) {
				continue
			}
			hit.After = " " + firstLine(c.console.Redact(canister.TextOf(e.Content)))
		default:
			continue
		}
		if called = true; len(hits) < hitsShown && q.tool+hit.Match != "" && (q.tool != "" || q.failed) {
			hits = append(hits, hit)
		}
		if q.least == 0 && len(hits) == hitsShown {
			return hits, true, nil
		}
	}
	if q.least > 0 && spent >= q.least {
		hits = append(hits, histories.Hit{Number: number, Kind: "cost", Match: c.console.money(spent)})
	}
	return hits, called && spent >= q.least, nil
}

// addPassages adds the places of the words, as long as there is time.
func (c conversationPages) addPassages(ctx context.Context, list []listed, words []string) {
	if len(words) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.console.within(scanTime))
	defer cancel()
	for i := range list {
		if f, err := histories.Passages(ctx, c.console.Store, list[i].Info, words, hitsShown, c.console.Redact); err == nil {
			list[i].hits = append(list[i].hits, f.Hits...)
		}
	}
}

// isPriced reports whether models have prices.
func (c *Console) isPriced() bool {
	policy := c.policy()
	return policy != nil && len(policy.Prices) > 0
}
