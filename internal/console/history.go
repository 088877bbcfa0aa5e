// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
)

func (c conversationPages) historyPage(w http.ResponseWriter, r *http.Request, p *person) {
	q := queryOf(r)
	f := c.find(r.Context(), p, q)
	var items []part
	for _, one := range f.list {
		if len(one.hits) > 0 {
			c.recordReading(r, p, one.Info)
		}
		items = append(items, c.listItem(r.Context(), p, one))
	}
	more := q
	more.before, more.further = f.next, f.cut
	c.console.show(w, r, p, "Conversations",
		el("h1", text("Conversations")),
		c.searchForm(p, q),
		when(c.console.Store == nil, el("p", text("This server stores no conversations. Add the table [history] to its configuration."))),
		when(q.wrong != "", el("p", class("notice failed"), attr("role", "alert"), text(q.wrong))),
		c.console.unread.notice(f.err),
		when(len(items) == 0 && c.console.Store != nil, el("p", text("No conversation matches."))),
		el("ol", group(class("list"), group(items...))),
		when(f.cut, el("p", class("faint"), text("The search stopped to keep the page quick. It went back to "), moment(f.next.Changed), text("."))),
		when(!f.next.IsZero(), el("p", el("a", href(more.address()), text(map[bool]string{true: "Search further", false: "Older conversations"}[f.cut])))),
		when(c.mayBegin(p), c.beginForm(p, c.console.clean.writtenIn(r))))
}

func (c conversationPages) searchForm(p *person, q query) part {
	check := func(name, label string, on bool) part {
		return el("p", class("check"), el("input", attr("type", "checkbox"), id("f-"+name), attr("name", name), attr("value", "1"), when(on, attr("checked", ""))),
			el("label", attr("for", "f-"+name), text(label)))
	}
	return el("form", attr("method", "get"), action(Prefix+"/conversations"), class("search"), attr("role", "search"),
		c.console.field("q", "Words", q.text, attr("type", "search")), el("button", text("Search")),
		details(q.tool+q.tag+q.owner+q.cost != "" || q.failed || q.open, text("More conditions"), el("div", class("search"),
			c.console.field("tool", "Tool", q.tool), c.console.field("tag", "Tag", q.tag),
			when(p.Role.May(Audit), c.console.field("owner", "Owner", q.owner)),
			when(c.console.isPriced(), c.console.field("cost", "Cost at least", q.cost, attr("inputmode", "decimal"))),
			check("failed", "With a failed call", q.failed), check("open", "Unfinished", q.open))))
}

// ownerLink returns a link to the conversations of an owner, whose name can be a long digest. A name
// with a secret has no link.
func (c conversationPages) ownerLink(owner string) part {
	const most = 20
	name := c.console.Redact(owner)
	hasSecret := name != owner
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most-1]) + "…"
	}
	if hasSecret {
		return text(name)
	}
	return el("a", href(query{owner: owner}.address()), text(name))
}

func (c conversationPages) listItem(ctx context.Context, p *person, one listed) part {
	info := histories.Titled{Store: c.console.Store, Redact: c.console.Redact}.Entitled(ctx, one.Info)
	title := cmp.Or(info.Title, info.ID)
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
			when(p.Role.May(Audit) && info.Owner != "", text(" · "), c.ownerLink(info.Owner))),
		when(len(hits) > 0, el("ul", group(class("hits"), group(hits...)))))
}

// badges returns the tags of a conversation and whether it is unfinished.
func badges(info history.Info) part {
	var all []part
	if isUnfinished(info) {
		all = append(all, text(" "), el("span", class("badge open"), text("unfinished")))
	}
	for _, tag := range info.Tags {
		all = append(all, text(" "), el("span", class("badge"), text(tag)))
	}
	return group(all...)
}
