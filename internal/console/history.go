// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
)

// Bounds of a list of conversations.
const (
	pageSize   = 50
	scanBatch  = 200             // conversations that are read at a time to look for calls
	scanTime   = 2 * time.Second // for looking into conversations, for one page
	hitsShown  = 2               // of each conversation
	maxScanned = 5000            // conversations that one page looks into
)

// query says which conversations a list has.
type query struct {
	text, owner, tag, tool string
	failed, open           bool
	before                 time.Time // changed before; zero means now
}

func queryOf(r *http.Request) query {
	v := r.URL.Query()
	q := query{text: v.Get("q"), owner: v.Get("owner"), tag: v.Get("tag"), tool: v.Get("tool"), failed: v.Get("failed") != "", open: v.Get("open") != ""}
	q.before, _ = time.Parse(time.RFC3339Nano, v.Get("before")) // an invalid one is like none
	return q
}

// address returns the path of the list.
func (q query) address() string {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.text, "owner": q.owner, "tag": q.tag, "tool": q.tool} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.failed {
		v.Set("failed", "1")
	}
	if q.open {
		v.Set("open", "1")
	}
	if !q.before.IsZero() {
		v.Set("before", q.before.UTC().Format(time.RFC3339Nano))
	}
	return Prefix + "/conversations?" + v.Encode()
}

// listed is one conversation of a list.
type listed struct {
	history.Info
	hits []histories.Hit
}

// found is a part of a list.
type found struct {
	list []listed
	next time.Time // where the list continues; zero at its end
	cut  bool      // the time was up before the page was full
	err  error     // about conversations that cannot be read
}

// find returns the conversations of a query that a person may see.
func (c conversationPages) find(ctx context.Context, p *person, q query) (f found) {
	if c.console.Store == nil {
		return f
	}
	filter := history.Filter{Text: q.text, Owner: q.owner, Open: q.open, Until: q.before, Limit: pageSize}
	if q.tag != "" {
		filter.Tags = []string{q.tag}
	}
	if p.Role < Operate {
		if filter.Owner = p.Owner; p.Owner == "" {
			return f
		}
	}
	looks := q.tool != "" || q.failed
	if looks {
		filter.Limit = scanBatch
	}
	ends := c.console.Now().Add(scanTime)
	for scanned := 0; ; {
		last := 0
		for info, err := range c.console.Store.List(ctx, filter) {
			if err != nil {
				f.err = err
				continue
			}
			last++
			scanned++
			filter.Until = info.Changed
			if looks && !c.contains(ctx, info, q) {
				continue
			}
			if f.list = append(f.list, listed{Info: info}); len(f.list) == pageSize {
				f.next = info.Changed
				break
			}
			if looks && c.console.Now().After(ends) {
				f.cut, f.next = true, info.Changed
				break
			}
		}
		switch {
		case !f.next.IsZero(), last < filter.Limit, ctx.Err() != nil:
			c.addPassages(ctx, f.list, filter.Words(), ends)
			return f
		case scanned >= maxScanned, c.console.Now().After(ends):
			f.cut, f.next = true, filter.Until
			return f
		}
	}
}

// contains reports whether a conversation has a call of the tool, and a failed one.
func (c conversationPages) contains(ctx context.Context, info history.Info, q query) bool {
	names := map[string]string{}
	for entry, err := range c.console.Store.Read(ctx, info.ID, 0) {
		if err != nil {
			return false
		}
		switch e := entry.(type) {
		case canister.Invocation:
			names[e.ID] = e.Name
			if strings.Contains(e.Name, q.tool) && !q.failed {
				return true
			}
		case canister.Result:
			if e.Failed() && strings.Contains(names[e.Invocation], q.tool) {
				return true
			}
		}
	}
	return false
}

// addPassages adds the places of the words, as long as there is time.
func (c conversationPages) addPassages(ctx context.Context, list []listed, words []string, ends time.Time) {
	if len(words) == 0 {
		return
	}
	for i := range list {
		if c.console.Now().After(ends) {
			return
		}
		if f, err := histories.Passages(ctx, c.console.Store, list[i].Info, words, hitsShown, c.console.Redact); err == nil {
			list[i].hits = f.Hits
		}
	}
}

func (c conversationPages) historyPage(w http.ResponseWriter, r *http.Request, p *person) {
	q := queryOf(r)
	f := c.find(r.Context(), p, q)
	var items []part
	for _, one := range f.list {
		items = append(items, c.listItem(p, one))
	}
	more := q
	more.before = f.next
	c.console.show(w, p, "Conversations",
		el("h1", text("Conversations")),
		c.searchForm(p, q),
		when(c.console.Store == nil, el("p", text("This server stores no conversations. Add the table [history] to its configuration."))),
		when(f.err != nil, el("p", class("notice failed"), text("Some conversations cannot be read. "+c.console.redacted(f.err)))),
		when(len(items) == 0 && c.console.Store != nil, el("p", text("No conversation matches."))),
		el("ol", group(class("list"), group(items...))),
		when(f.cut, el("p", class("faint"), text("The search stopped to keep the page quick. It went back to "), moment(f.next), text("."))),
		when(!f.next.IsZero(), el("p", el("a", href(more.address()), text("Older conversations")))),
		when(c.console.Engine != nil && p.Role >= Answer, c.beginForm(p)))
}

// redacted returns the text of an error without secrets; empty without an error.
func (c *Console) redacted(err error) string {
	if err == nil {
		return ""
	}
	return c.Redact(err.Error())
}

func (c conversationPages) searchForm(p *person, q query) part {
	check := func(name, label string, on bool) part {
		return el("p", class("check"), el("input", attr("type", "checkbox"), id("f-"+name), attr("name", name), attr("value", "1"), when(on, attr("checked", ""))),
			el("label", attr("for", "f-"+name), text(label)))
	}
	return el("form", attr("method", "get"), action(Prefix+"/conversations"), class("search"), attr("role", "search"),
		field("q", "Words", q.text, attr("type", "search")),
		field("tool", "Tool", q.tool), field("tag", "Tag", q.tag),
		when(p.Role >= Operate, field("owner", "Owner", q.owner)),
		check("failed", "With a failed call", q.failed), check("open", "Unfinished", q.open),
		el("button", text("Search")))
}

func (c conversationPages) listItem(p *person, one listed) part {
	info := histories.Titled{Store: c.console.Store}.Entitled(context.Background(), one.Info)
	title := info.Title
	if title == "" {
		title = info.ID
	}
	at := pathOf(info.ID)
	var hits []part
	for _, hit := range one.hits {
		where := fmt.Sprintf("%d %s", hit.Number, hit.Kind)
		if hit.Tool != "" {
			where += " " + hit.Tool
		}
		hits = append(hits, el("li", el("a", href(fmt.Sprintf("%s?to=%d#c%d", at, min(hit.Number+windowSize/2, info.Length), hit.Number)), text(where)), text(" "),
			text(hit.Before), el("mark", text(hit.Match)), text(hit.After)))
	}
	return el("li",
		el("p", class("title"), el("a", href(at), text(c.console.Redact(title))), badges(info)),
		el("p", class("faint"), moment(info.Changed), text(fmt.Sprintf(" · %d canisters", info.Length)),
			when(p.Role >= Operate && info.Owner != "", text(" · "+info.Owner))),
		when(len(hits) > 0, el("ul", group(class("hits"), group(hits...)))))
}

// badges returns the tags of a conversation and whether it is unfinished.
func badges(info history.Info) part {
	var all []part
	if (history.Filter{Open: true}).Match(info) {
		all = append(all, text(" "), el("span", class("badge open"), text("unfinished")))
	}
	for _, tag := range slices.Clone(info.Tags) {
		all = append(all, text(" "), el("span", class("badge"), text(tag)))
	}
	return group(all...)
}

// pathOf returns the path of a conversation, with the prefix.
func pathOf(conversation string) string {
	return Prefix + "/conversations/" + url.PathEscape(conversation)
}
