// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/ensemble"
	"golang.org/x/net/html"
)

// changeTime bounds how long a change of an ensemble may take.
const changeTime = 20 * time.Second

func (c serverPages) nowPage(w http.ResponseWriter, r *http.Request, p *person) {
	all, err := waitPages(c).unfinishedOf(r.Context(), p)
	waiting := 0
	var rows []part
	for _, one := range all {
		state := "running or interrupted"
		if len(one.open) > 0 {
			state = "waits"
			waiting += len(one.open)
		}
		rows = append(rows, row(el("a", href(pathOf(one.ID)), text(c.console.Redact(cmp.Or(one.Title, one.ID)))), text(state), moment(one.Changed), text(strconv.Itoa(one.Length))))
	}
	c.console.showCurrent(w, p, "Now",
		el("h1", text("Now")),
		when(waiting > 0, el("p", class("notice"), el("a", href(Prefix+"/waiting"), text(fmt.Sprintf("%d waiting for an answer", waiting))))),
		when(err != nil, el("p", class("notice failed"), text("Some conversations cannot be read. "+c.console.redacted(err)))),
		el("section", el("h2", text("Turns")), when(len(rows) == 0, el("p", text("No turn is under way."))),
			when(len(rows) > 0, table("Unfinished turns", []string{"Conversation", "State", "Changed", "Canisters"}, rows...))),
		c.ensembles(p), c.budgets(r.Context()),
		when(p.Role >= Operate && c.console.Reload != nil, c.console.form(p, "/reload", el("button", text("Reload the configuration")))))
}

// ensembles returns the state of each ensemble. Only an operator sees errors, which can
// contain the output of a process, and has the buttons.
func (c serverPages) ensembles(p *person) part {
	if c.console.Roster == nil {
		return nil
	}
	heads := []string{"Server", "State", "Since", "Calls", "Failed", "Restarts", "p50", "p99", "Tools"}
	operates := p.Role >= Operate
	if operates {
		heads = append(heads, "Last error", "Change")
	}
	var rows []part
	for _, e := range c.console.Roster.Health().Ensembles {
		cells := []part{
			text(e.Name), el("span", class("state "+stateClass(e.State)), text(string(e.State))), moment(e.Since), text(fmt.Sprintf("%d, %d running", e.Calls, e.InFlight)),
			text(strconv.Itoa(e.Failures)), text(strconv.Itoa(e.Restarts)), text(short(e.Latency.P50)), text(short(e.Latency.P99)), text(strconv.Itoa(e.Tools)),
		}
		if operates {
			cells = append(cells, when(e.LastError != "", details(false, text("Error"), pre(e.LastError))), c.ensembleForms(p, e))
		}
		rows = append(rows, row(cells...))
	}
	return el("section", el("h2", text("Servers")), when(len(rows) == 0, el("p", text("No server is configured."))),
		when(len(rows) > 0, table("State of the servers", heads, rows...)))
}

func stateClass(s ensemble.State) string {
	switch s {
	case ensemble.Ready, ensemble.Idle:
		return "good"
	case ensemble.Lost, ensemble.Parked, ensemble.NeedsLogin, ensemble.Closed:
		return "bad"
	}
	return ""
}

func (c serverPages) ensembleForms(p *person, e ensemble.EnsembleHealth) part {
	button := func(what, title string) part {
		return c.console.form(p, "/ensembles/"+url.PathEscape(e.Name)+"/"+what, class("inline"), el("button", attr("aria-label", title+" "+e.Name), text(title)))
	}
	var login part
	if e.State == ensemble.NeedsLogin && c.console.LoginCommand != nil {
		login = el("p", text("To log in: "), el("code", text(c.console.LoginCommand(e.Name))))
	}
	if e.State == ensemble.Ready {
		return group(button("restart", "Restart"), button("refresh", "List again"), button("disconnect", "Disconnect"), login)
	}
	return group(button("connect", "Connect"), login)
}

// changeEnsemble connects, disconnects, restarts or lists an ensemble.
func (c serverPages) changeEnsemble(w http.ResponseWriter, r *http.Request, p *person) {
	name, what := r.PathValue("name"), r.PathValue("what")
	if c.console.Roster == nil {
		c.console.refuse(w, r, http.StatusNotFound, "There is no such server.")
		return
	}
	e, ok := c.console.Roster.Ensemble(name)
	if !ok {
		c.console.refuse(w, r, http.StatusNotFound, "There is no such server.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	var err error
	switch what {
	case "connect":
		err = e.Connect(ctx)
	case "refresh":
		err = e.Refresh(ctx)
	case "disconnect":
		err = e.Disconnect(ctx)
	case "restart":
		err = errors.Join(e.Disconnect(ctx), e.Connect(ctx))
	default:
		c.console.refuse(w, r, http.StatusNotFound, "There is no such action.")
		return
	}
	c.console.record(r, p, what, "", err, "ensemble", name)
	c.console.back(w, r, p, "/", name+": "+what+" is done.", err)
}

func (c serverPages) reload(w http.ResponseWriter, r *http.Request, p *person) {
	if c.console.Reload == nil {
		c.console.refuse(w, r, http.StatusNotFound, "The configuration cannot be read again.")
		return
	}
	done, err := c.console.Reload(r.Context())
	c.console.record(r, p, "reload", "", err)
	c.console.back(w, r, p, "/", done, err)
}

// budgets returns the caps that hold for all conversations, as bars. Caps of single
// conversations and identities have no common state.
func (c serverPages) budgets(ctx context.Context) part {
	policy := c.console.policy()
	if policy == nil {
		return nil
	}
	standings, err := policy.Standings(ctx, budget.Who{}, c.console.Now())
	if err != nil {
		return el("p", class("notice failed"), text("The budgets cannot be read. "+c.console.redacted(err)))
	}
	var items []part
	for _, s := range standings {
		if s.Cap.Scope != budget.Roster {
			continue
		}
		for _, unit := range []struct {
			name            string
			spent, held, of int64
			text            func(int64) string
		}{
			{"tokens", s.Spent.Tokens, s.Reserved.Tokens, s.Cap.Tokens, func(n int64) string { return strconv.FormatInt(n, 10) }},
			{"money", int64(s.Spent.Money), int64(s.Reserved.Money), int64(s.Cap.Money), func(n int64) string { return c.console.money(budget.Money(n)) }},
			{"time", int64(s.Spent.Time), int64(s.Reserved.Time), int64(s.Cap.Time), func(n int64) string { return short(time.Duration(n)) }},
		} {
			if unit.of <= 0 {
				continue
			}
			label := fmt.Sprintf("%s, %s: %s of %s (%s reserved)", unit.name, cmp.Or(string(s.Cap.Window), "in all"), unit.text(unit.spent), unit.text(unit.of), unit.text(unit.held))
			items = append(items, el("li", el("span", text(label)), meter(unit.spent+unit.held, unit.of, label)))
		}
	}
	if len(items) == 0 {
		return nil
	}
	return el("section", el("h2", text("Budgets")), el("ul", group(class("budgets"), group(items...))))
}

// meter returns a bar for a part of a whole.
func meter(value, of int64, label string) part {
	return el("meter", attr("min", "0"), attr("max", strconv.FormatInt(of, 10)), attr("value", strconv.FormatInt(min(value, of), 10)),
		attr("high", strconv.FormatInt(of/10*8, 10)), attr("optimum", "0"), attr("aria-label", label))
}

// raw returns a text as it is, for the content of a text area that the person changes.
func raw(s string) part {
	return func(parent *html.Node) { parent.AppendChild(&html.Node{Type: html.TextNode, Data: s}) }
}
