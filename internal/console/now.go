// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/unsent"
	"golang.org/x/net/html"
)

// changeTime bounds how long a change of an ensemble may take.
const changeTime = 20 * time.Second

// nowPage shows what waits and what runs, the state of each server, and the budgets.
func (c serverPages) nowPage(w http.ResponseWriter, r *http.Request, p *person) {
	found := waitPages(c).unfinishedOf(r.Context(), p)
	var waiting, running, left []part
	for i := range found.all {
		one := &found.all[i]
		for _, wait := range one.open {
			waiting = append(waiting, c.waitLine(p, one, wait))
		}
		switch item := c.turnLine(p, one); {
		case len(one.open) > 0:
		case conversationPages(c).isLeft(one.Info) || clientcalls.IsApproval(one.Info) && one.Last != canister.KindIntent:
			left = append(left, item)
		default:
			running = append(running, item)
		}
	}
	title, none := "Running", "No turn is running."
	var unsure part
	if c.console.Active == nil {
		title, none = "Not over", "Each turn is over."
		unsure = when(len(running) > 0, el("p", class("faint"), text("These turns are not over. This page does not know which of them are worked on, and which have failed: their pages tell.")))
	}
	list := func(title, none string, items []part) part {
		return el("section", el("h2", text(title)), when(len(items) == 0 && !found.cut, el("p", text(none))), when(len(items) > 0, el("ol", group(class("list"), group(items...)))))
	}
	c.console.showCurrent(w, r, p, "Now",
		el("h1", text("Now")),
		found.notices(),
		list("Waiting for an answer", "Nothing waits for an answer.", waiting),
		list(title, none, running), unsure,
		when(len(left) > 0, list("Not running here", "", left), el("p", class("faint"), text("This process does not continue these turns. Unless another process does, nothing continues them."))),
		c.ensembles(p), c.budgets(r.Context()),
		when(p.Role.May(Operate) && c.console.Reload != nil, c.console.form(p, "/reload", el("button", class("plain"), text("Reload the configuration")))))
}

// turnLine returns a turn that is not over and has no open wait, with a button if it can be resumed here.
func (c serverPages) turnLine(p *person, of *unfinished) part {
	mayResume := p.Role.May(Answer) && conversationPages(c).isLeft(of.Info) && c.console.runs(of.Info) && !clientcalls.IsApproval(of.Info)
	return el("li", el("p", class("title"), c.link(of.Info)),
		el("p", class("faint"), text(fmt.Sprintf("%s; last changed ", lastStep(of))), moment(of.Changed), text(fmt.Sprintf(" · %d canisters", of.Length))),
		when(mayResume, conversationPages(c).resumeForm(p, of.Info)))
}

// link returns a link to a conversation.
func (c serverPages) link(info history.Info) part {
	return el("a", href(pathOf(info.ID)), text(c.console.Redact(cmp.Or(info.Title, info.ID))))
}

// waitLine returns what waits in a conversation, with a link to where it is answered.
func (c serverPages) waitLine(p *person, of *unfinished, wait canister.Wait) part {
	title := waitTitles[wait.For]
	if call, ok := callOf(wait, of.canisters); ok {
		title += " " + call.Name
	}
	who := "You may answer"
	if why := mayAnswer(p, of.Info, wait); why != "" {
		who = strings.TrimSuffix(why, ".")
	}
	return el("li", class("asks"), el("p", class("title"), el("a", href(Prefix+"/waiting#"+waitAnchor(of.ID, wait)), text(c.console.Redact(title)))),
		el("p", class("faint"), text(who+" · until "), moment(wait.Deadline), text(" · "), c.link(of.Info)))
}

// lastStep describes the last canister of a conversation for people.
func lastStep(of *unfinished) string {
	switch of.Last {
	case canister.KindInvocation, canister.KindIntent:
		for _, one := range slices.Backward(of.canisters) {
			if call, ok := one.(canister.Invocation); ok {
				return "calls " + call.Name
			}
		}
		return "calls tools"
	case canister.KindWait:
		return "has a wait whose time is over"
	case canister.KindAnswer:
		if clientcalls.IsApproval(of.Info) {
			return "is answered; the client has not called again"
		}
		return "has an answer"
	}
	return "the model is asked"
}

// ensembles returns the state of each ensemble. Only operators and auditors see errors, which can
// contain the output of a process, and only operators have the buttons.
func (c serverPages) ensembles(p *person) part {
	if c.console.Roster == nil {
		return nil
	}
	var cards []part
	for _, e := range c.console.Roster.Health().Ensembles {
		cards = append(cards, el("li", class("card"),
			el("h3", text(e.Name+" "), el("span", class("state "+stateClass(e.State)), text(string(e.State)))),
			el("p", class("faint"), text("since "), moment(e.Since)),
			el("p", text(callsOf(&e))),
			sparkline(e.Name, c.console.latencies.of(e.Name)),
			when(p.Role.May(Audit) && e.LastError != "", details(stateClass(e.State) == "bad", text("Last error"), pre(c.console.Redact(e.LastError)))),
			when(p.Role.May(Operate), c.ensembleForms(p, e)), c.loginForm(p, &e)))
	}
	return el("section", el("h2", text("Servers")), when(len(cards) == 0, el("p", text("No server is configured."))),
		when(len(cards) > 0, el("ul", group(class("cards"), group(cards...)))))
}

// callsOf returns the numbers of an ensemble in words.
func callsOf(e *ensemble.EnsembleHealth) string {
	of := []string{display.Count(e.Tools, "tool"), display.Count(e.Calls, "call")}
	for _, one := range []struct {
		n    int
		what string
	}{{e.InFlight, "running"}, {e.Failures, "failed"}} {
		if one.n > 0 {
			of = append(of, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if e.Restarts > 0 {
		of = append(of, display.Count(e.Restarts, "restart"))
	}
	if e.Calls > 0 {
		of = append(of, fmt.Sprintf("p50 %s, p99 %s", short(e.Latency.P50), short(e.Latency.P99)))
	}
	return strings.Join(of, " · ")
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

// ensembleButton is a button that changes an ensemble.
type ensembleButton struct{ what, title string }

// ensembleForms returns the buttons for what can be done to an ensemble in its state.
func (c serverPages) ensembleForms(p *person, e ensemble.EnsembleHealth) part {
	var forms []part
	for _, b := range buttonsOf(e.State) {
		forms = append(forms, c.console.form(p, "/ensembles/"+url.PathEscape(e.Name)+"/"+b.what, class("inline"),
			el("button", class("plain"), attr("aria-label", b.title+" "+e.Name), text(b.title))))
	}
	return el("div", forms...)
}

func buttonsOf(s ensemble.State) []ensembleButton {
	switch s {
	case ensemble.Ready:
		return []ensembleButton{{"restart", "Restart"}, {"refresh", "List the tools again"}, {"disconnect", "Disconnect"}, {"park", "Park"}}
	case ensemble.Parked:
		return []ensembleButton{{"revive", "Revive"}}
	case ensemble.Closed:
		return nil
	}
	return []ensembleButton{{"connect", "Connect"}, {"park", "Park"}}
}

// mayLogin reports whether a person may log in at an ensemble: for the own calls, or as an
// operator for the program.
func (c serverPages) mayLogin(p *person, name string) bool {
	if c.console.Login == nil || c.console.OpenLogin == nil {
		return false
	}
	kind := c.console.Login(name)
	return kind == loginpages.Own && p.Role.May(Answer) || kind == loginpages.Shared && p.Role.May(Operate)
}

// loginForm returns the button that leads to the login at an ensemble, if there is something
// to log in for.
func (c serverPages) loginForm(p *person, e *ensemble.EnsembleHealth) part {
	needed, may := e.State == ensemble.NeedsLogin, c.mayLogin(p, e.Name)
	title := "Log in"
	if may && c.console.Login(e.Name) == loginpages.Own {
		needed, title = true, "Log in for your calls"
	}
	if !needed || !p.Role.May(Answer) {
		return nil
	}
	var command part
	if c.console.LoginCommand != nil && p.Role.May(Operate) && e.State == ensemble.NeedsLogin {
		command = el("p", class("faint"), text("In a terminal: "), el("code", text(c.console.LoginCommand(e.Name))))
	}
	return group(command, when(may, c.console.form(p, "/ensembles/"+url.PathEscape(e.Name)+"/login", class("inline"),
		el("button", attr("aria-label", title+" at "+e.Name), text(title)))))
}

// openLogin leads to the page where a person logs in at an ensemble.
func (c serverPages) openLogin(w http.ResponseWriter, r *http.Request, p *person) {
	name := r.PathValue("name")
	if !c.mayLogin(p, name) {
		c.console.refuse(w, r, http.StatusForbidden, "You cannot log in at this server here.")
		return
	}
	path, err := c.console.OpenLogin(w, r, name, c.stillMayLogin(r, p, name))
	c.console.record(r, p, "open_login", "", err, "ensemble", name)
	if err != nil {
		c.console.back(w, r, p, "/", "", err)
		return
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// stillMayLogin returns a function that checks the token, the session and the rights of a person
// again, for a login at an ensemble that the request began.
func (c serverPages) stillMayLogin(r *http.Request, p *person, name string) func() error {
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	return func() error {
		checked, may := false, false
		valid := c.console.withToken(unsent.Response{}, r, p.session.token, func(_ http.ResponseWriter, r *http.Request) {
			caller, ok := c.console.callerOf(r, p.session)
			checked, may = true, ok && c.console.sessions.isOpen(p.session) && c.mayLogin(&person{Caller: caller}, name)
		})
		switch {
		case valid && !checked:
			return errors.New("your rights cannot be checked at the moment")
		case !may:
			return errSessionEnded
		}
		return nil
	}
}

// changeEnsemble connects, disconnects, restarts, parks or lists an ensemble.
func (c serverPages) changeEnsemble(w http.ResponseWriter, r *http.Request, p *person) {
	name, what := r.PathValue("name"), r.PathValue("what")
	var e *ensemble.Ensemble
	if c.console.Roster != nil {
		e, _ = c.console.Roster.Ensemble(name)
	}
	if e == nil || changed[what] == "" {
		c.console.refuse(w, r, http.StatusNotFound, "There is no such server, or no such action.")
		return
	}
	ctx, cancel := actContext(w, r, changeTime)
	defer cancel()
	err := change(ctx, e, what, "parked by "+cmp.Or(p.Name, "an operator")+" at the console")
	c.console.record(r, p, what, "", err, "ensemble", name)
	c.console.back(w, r, p, "/", changed[what]+" "+name+".", err)
}

// change does one of the actions to an ensemble. One that is parked is only revived, also by a page that
// shows it as it was before.
func change(ctx context.Context, e *ensemble.Ensemble, what, reason string) error {
	switch {
	case what == "revive":
		return e.Connect(ctx)
	case what == "park":
		return e.Park(ctx, reason)
	case e.Snapshot().State == ensemble.Parked:
		return fmt.Errorf("%s is parked: revive it first", e.Name())
	case what == "connect":
		return e.Connect(ctx)
	case what == "disconnect":
		return e.Disconnect(ctx)
	case what == "restart":
		return errors.Join(e.Disconnect(ctx), e.Refresh(ctx)) // connects, unless it is parked meanwhile
	}
	return e.Refresh(ctx)
}

// changed are the actions as a page says that they are done.
var changed = map[string]string{
	"connect": "Connected", "revive": "Revived", "refresh": "Listed the tools of", "disconnect": "Disconnected", "restart": "Restarted", "park": "Parked",
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
		return el("p", class("notice failed"), text("The budgets cannot be read. "+c.console.clean.errorText(err)))
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
			{"Tokens", s.Spent.Tokens, s.Reserved.Tokens, s.Cap.Tokens, func(n int64) string { return strconv.FormatInt(n, 10) }},
			{"Money", int64(s.Spent.Money), int64(s.Reserved.Money), int64(s.Cap.Money), func(n int64) string { return c.console.money(budget.Money(n)) }},
			{"Time", int64(s.Spent.Time), int64(s.Reserved.Time), int64(s.Cap.Time), func(n int64) string { return short(time.Duration(n)) }},
		} {
			if unit.of <= 0 {
				continue
			}
			label := fmt.Sprintf("%s, %s: %s of %s", unit.name, windowText(s.Cap.Window), unit.text(unit.spent), unit.text(unit.of))
			if unit.held > 0 {
				label += fmt.Sprintf(", and %s reserved for what runs", unit.text(unit.held))
			}
			items = append(items, el("li", el("span", text(label)), meter(unit.spent+unit.held, unit.of, label)))
		}
	}
	if len(items) == 0 {
		return nil
	}
	return el("section", el("h2", text("Budgets")), el("ul", group(class("budgets"), group(items...))))
}

// windowText says for how long a cap counts.
func windowText(w budget.Window) string {
	if w == "" {
		return "in all"
	}
	return "this " + string(w)
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
