// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/listpage"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
)

// maxWaiting bounds how many unfinished conversations of a kind the page of waits looks at: the own
// ones, the approvals, and those that only an operator sees.
const maxWaiting = 500

// unfinished is a conversation whose turn is not over, with its end.
type unfinished struct {
	history.Info
	canisters []canister.Canister // from the last message of the model on
	open      []canister.Wait
}

// unfinishedList has the conversations of a person whose turn is not over.
type unfinishedList struct {
	console *Console
	person  *person
	all     []unfinished
	read    map[string]bool // IDs
	cut     bool            // there are others, which were not read
	err     error           // about conversations that cannot be read
}

// unfinishedOf returns the conversations that a person sees whose turn is not over: the approvals
// of calls and then the others, each with the newest first. It reads the person's own, then
// approvals, then all others, each with limits of their own.
func (c waitPages) unfinishedOf(ctx context.Context, p *person) *unfinishedList {
	list := &unfinishedList{console: c.console, person: p, read: map[string]bool{}}
	if c.console.Store == nil {
		return list
	}
	anyone := func(history.Info) bool { return true }
	if p.Owner != "" {
		list.scan(ctx, p.Owner, anyone)
	}
	if p.Role.May(Audit) || p.canBeNamed() {
		list.scan(ctx, "", clientcalls.IsApproval)
	}
	if p.Role.May(Audit) {
		list.scan(ctx, "", anyone)
	}
	slices.SortFunc(list.all, func(a, b unfinished) int {
		if first := clientcalls.IsApproval(a.Info); first != clientcalls.IsApproval(b.Info) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return a.Compare(b.Info)
	})
	return list
}

// scan adds the unfinished conversations of an owner, or of all if it is empty, that keep accepts
// and the person sees. It looks at one at least, and stops when its time is over.
func (l *unfinishedList) scan(ctx context.Context, owner string, keep func(history.Info) bool) {
	ends := l.console.Now().Add(l.console.within(openTime))
	isOver := func() bool { return l.console.Now().After(ends) }
	at, isLast, n := listpage.Place{}, false, 0
	for !isLast && ctx.Err() == nil {
		var batch []history.Info
		var err error
		batch, isLast, err = listpage.Read(ctx, l.console.Store, history.Filter{Open: true, Owner: owner}, at, batchSize, nil)
		l.err = cmp.Or(l.err, l.console.unread.hide(ctx, l.person, err))
		for _, info := range batch {
			at = listpage.After(info)
			if l.read[info.ID] || !keep(info) {
				continue
			}
			if n == maxWaiting || n > 0 && isOver() {
				l.cut = true
				return
			}
			n++
			l.add(ctx, info)
		}
		if !isLast && isOver() {
			l.cut = true
			return
		}
	}
}

// add reads the end of a conversation, and adds it if the person sees it.
func (l *unfinishedList) add(ctx context.Context, info history.Info) {
	l.read[info.ID] = true
	one := unfinished{Info: info}
	if err := l.console.readEnd(ctx, &one); err != nil {
		l.err = cmp.Or(l.err, l.console.unread.hide(ctx, l.person, err))
	} else if l.person.sees(info) || l.person.isNamed(&one) {
		l.all = append(l.all, one)
	}
}

// notices says what is missing in the list.
func (l *unfinishedList) notices() part {
	return group(
		l.console.unread.notice(l.err),
		when(l.cut, el("p", class("notice"), text("This list is not complete: there are more unfinished conversations than this page can read."))))
}

// readEnd reads the end of a conversation.
func (c *Console) readEnd(ctx context.Context, one *unfinished) error {
	_, canisters, err := history.Tail(ctx, c.Store, one.ID, func(_ int, end []canister.Canister) bool {
		return slices.ContainsFunc(end, isFromModel)
	})
	one.canisters, one.open = canisters, waits.Open(one.ID, canisters, c.Now())
	return err
}

func isFromModel(one canister.Canister) bool { return one.Kind() == canister.KindAssistant }

// canBeNamed reports whether a rule can name the person as the one who decides about calls of
// clients.
func (p *person) canBeNamed() bool { return p.Role.May(Answer) && p.Name != "" }

// isNamed reports whether the person is named to decide about the call of a client. It can be
// the person's own call, which the person sees and may not answer.
func (p *person) isNamed(by *unfinished) bool {
	return p.canBeNamed() && clientcalls.IsApproval(by.Info) && slices.ContainsFunc(by.open, func(wait canister.Wait) bool { return wait.Who == p.Name })
}

func (c waitPages) waitingPage(w http.ResponseWriter, r *http.Request, p *person) {
	list := c.unfinishedOf(r.Context(), p)
	var items []part
	for i := range list.all {
		one := &list.all[i]
		for _, wait := range one.open {
			conversationPages(c).recordReading(r, p, one.Info)
			items = append(items, c.waitItem(r.Context(), p, one, wait, nil))
		}
	}
	c.console.showCurrent(w, r, p, "Waiting",
		el("h1", text("Waiting")),
		el("p", class("faint"), text("Calls that need an approval, questions of tools, and calls with an unknown outcome.")),
		list.notices(), when(len(items) == 0 && !list.cut, el("p", text("Nothing waits."))), group(items...))
}

// mayAnswer returns why a person may not answer a wait; empty if the person may.
func mayAnswer(p *person, info history.Info, wait canister.Wait) string {
	switch {
	case !p.Role.May(Answer):
		return "Your role does not permit answers."
	case wait.Who != "" && wait.Who != p.Name:
		return "Only " + wait.Who + " may answer."
	case !clientcalls.IsApproval(info) || p.Role.May(Operate):
		return ""
	case wait.Who == "":
		return "An operator answers: a client does not approve its own calls."
	case clientcalls.MayBeOwn(info, p.Identity, p.Name):
		return "A client does not approve its own calls. The rule that asks must name another person."
	}
	return ""
}

// waitTitles says for each kind of wait what is asked.
var waitTitles = map[canister.WaitFor]string{
	canister.WaitApproval: "May this call be made?", canister.WaitOutcome: "What did this call do?",
	canister.WaitElicitation: "A tool asks a question", canister.WaitTimer: "A pause",
}

// waitItem returns a wait of a conversation with its call and the forms that answer it. typed has the values
// that the person sent before.
func (c waitPages) waitItem(ctx context.Context, p *person, of *unfinished, wait canister.Wait, typed url.Values) part {
	info := of.Info
	call, _ := callOf(wait, of.canisters)
	title := waitTitles[wait.For]
	if call.Name != "" {
		title += " " + call.Name
	}
	why := mayAnswer(p, info, wait)
	var answer part
	if why == "" {
		answer = c.answerForms(p, info, wait, call, typed)
	}
	name := cmp.Or(info.Title, info.ID)
	return el("article", class("wait"), id(waitAnchor(info.ID, wait)),
		el("h2", text(c.console.Redact(title))),
		el("ul", class("remarks"),
			el("li", el("a", href(pathOf(info.ID)), text(c.console.Redact(name)))),
			el("li", text("since "), moment(wait.Time)), el("li", text("until "), moment(wait.Deadline)),
			el("li", text(cmp.Or(wait.Who, "anyone with the right")+" may answer"))),
		c.waitDetails(ctx, wait, call), answer, when(why != "", el("p", class("faint"), text(why))))
}

// waitAnchor returns the ID of the element of a wait, which has letters and digits only.
func waitAnchor(conversation string, wait canister.Wait) string {
	sum := sha256.Sum256([]byte(conversation + "\x00" + wait.ID))
	return "w" + hex.EncodeToString(sum[:8])
}

// callOf returns the invocation that a wait is about.
func callOf(wait canister.Wait, canisters []canister.Canister) (canister.Invocation, bool) {
	for _, one := range canisters {
		if call, ok := one.(canister.Invocation); ok && call.ID == wait.Invocation {
			return call, true
		}
	}
	return canister.Invocation{}, false
}

// waitDetails describes what the answer is about: the call with its arguments decoded and
// texts compared, or the question.
func (c waitPages) waitDetails(ctx context.Context, wait canister.Wait, call canister.Invocation) part {
	if wait.For == canister.WaitElicitation {
		question, err := waits.Question(wait)
		if err != nil {
			return el("p", class("failed"), text(c.console.Redact(err.Error())))
		}
		return group(el("p", text(cmp.Or(question.Server, "A tool")+" asks:")), pre(c.console.Redact(question.Message)),
			when(wait.Arguments != "", group(el("p", text("The arguments are:")), pre(c.console.clean.shownJSON(wait.Arguments)))),
			when(question.URL != "", c.questionPage(question.URL)))
	}
	if call.Name == "" {
		return nil
	}
	arguments := argumentsOf(wait, call)
	clean := c.console.clean.redactJSON(arguments)
	ask := c.approvalOf(ctx, call, clean)
	return group(diffRows(rendering.QuestionRows(diffStyle, ask, ask.ReadOnly)), maskNote(arguments, clean), details(false, text("Arguments as JSON"), pre(display.JSON([]byte(clean)))))
}

// questionPage shows the address that a question leads to, with a warning if it can be mistaken for another host's. It
// is a link unless it has a secret, or a user, which can look like the host.
func (c waitPages) questionPage(address string) part {
	warning := browser.Warning(address)
	to, err := url.Parse(address)
	isLink := err == nil && browser.CanOpen(address) && to.User == nil && c.console.clean.unlessSecret(address) != ""
	return group(when(warning != "", el("p", class("notice failed"), text(c.console.Redact(warning)))),
		when(isLink, el("p", text("Visit "), el("a", href(address), attr("target", "_blank"), attr("rel", "noreferrer noopener"), text(address)))),
		when(!isLink, pre(c.console.Redact(address))))
}

// argumentsOf returns the arguments that a wait is about.
func argumentsOf(wait canister.Wait, call canister.Invocation) string {
	return cmp.Or(wait.Arguments, call.Arguments)
}

// approvalOf returns the question about a call, with the arguments as they are shown. All its texts
// are without secrets, because they are going to be wrapped.
func (c waitPages) approvalOf(ctx context.Context, call canister.Invocation, arguments string) converse.Approval {
	ask := converse.Approval{Invocation: call, Tool: c.console.Redact(call.Name), Arguments: json.RawMessage(arguments)}
	if c.console.Roster == nil {
		return ask
	}
	catalog, err := c.console.Roster.Latest(ctx)
	if err != nil {
		return ask
	}
	if tool, ok := catalog.Find(call.Name); ok {
		d := *tool.Definition()
		d.Name, d.Title = c.console.Redact(d.Name), c.console.Redact(d.Title)
		ask.Ensemble, ask.Tool, ask.Definition, ask.ReadOnly = tool.Ensemble().Name(), d.Name, &d, tool.ReadOnly()
	}
	return ask
}

// diffStyle is how calls and changes are rendered. The browser does not wrap their rows (pre.diff of the
// stylesheet): they fit a small window, and only a phone scrolls them.
var diffStyle = rendering.Style{Width: 60}

// diffRows returns rows, with the removed and the added ones marked.
func diffRows(rows []rendering.Row) part {
	var all []part
	for _, row := range rows {
		switch row.Mark {
		case '+':
			all = append(all, el("ins", text(row.Text)), text("\n"))
		case '-':
			all = append(all, el("del", text(row.Text)), text("\n"))
		default:
			all = append(all, text(row.Text+"\n"))
		}
	}
	return el("pre", group(attr("tabindex", "0"), class("diff"), group(all...)))
}

// answerForms returns the forms with the answers that a wait accepts.
func (c waitPages) answerForms(p *person, info history.Info, wait canister.Wait, call canister.Invocation, typed url.Values) part {
	form := func(verdict canister.Verdict, parts ...part) part {
		return c.console.form(p, fmt.Sprintf("/waiting/%s/%s", url.PathEscape(info.ID), url.PathEscape(wait.ID)), class("stack"),
			hidden("verdict", string(verdict)), group(parts...))
	}
	named := func(s string) part { return el("button", text(s)) }
	written := func(name, label, value string) part { // with an ID that does not collide with those of other waits
		id := "w-" + name + "-" + wait.ID
		return group(el("label", attr("for", id), text(label)),
			el("textarea", attr("id", id), attr("name", name), attr("rows", "3"), raw(cmp.Or(c.console.clean.unlessSecret(typed.Get(name)), value))))
	}
	was := func(verdict canister.Verdict) bool { return typed.Get("verdict") == string(verdict) }
	switch wait.For {
	case canister.WaitApproval:
		return el("div", class("answers"), form(canister.VerdictAllow, named("Allow this call")),
			form(canister.VerdictDeny, el("button", class("danger"), text("Deny this call")),
				details(was(canister.VerdictDeny), text("Reason of the denial"), written("reason", "Reason, which the model reads", ""))),
			details(was(canister.VerdictChange), text("Allow with other arguments"), form(canister.VerdictChange,
				written("arguments", "Arguments as JSON", c.console.clean.shownJSON(argumentsOf(wait, call))), named("Allow with these arguments"))))
	case canister.WaitOutcome:
		return el("div", class("answers"),
			details(true, text("It was made"), form(canister.VerdictDone, written("result", "Its result", ""), named("Report the result"))),
			form(canister.VerdictUnknown, named("The outcome stays unknown")),
			form(canister.VerdictAllow, el("button", class("danger"), text("Make the call again, possibly for the second time"))))
	case canister.WaitElicitation:
		label := "Answer"
		if question, err := waits.Question(wait); err == nil && question.URL != "" {
			label = "I have opened it"
		}
		return el("div", class("answers"), form(canister.VerdictAccept, c.questionFields(wait, typed), named(label)),
			form(canister.VerdictDecline, named("Decline")), form(canister.VerdictCancel, named("Dismiss")))
	}
	return form(canister.VerdictCancel, named("End the pause"))
}

// withArguments returns the answer that allows a call with the arguments of a form. If they are as
// the page has shown them, the call keeps its own, which can have secrets that the page does not show.
func (c waitPages) withArguments(given canister.Answer, own, posted string) (canister.Answer, error) {
	posted = strings.TrimSpace(strings.ReplaceAll(posted, "\r\n", "\n")) // browsers send \r\n
	shown := c.console.clean.shownJSON(own)
	if posted == strings.TrimSpace(shown) {
		given.Verdict = canister.VerdictAllow
		return given, nil
	}
	isMasked := shown != display.JSON([]byte(own)) || !strings.Contains(own, redact.Mark)
	if isMasked && strings.Contains(posted, redact.Mark) {
		return given, fmt.Errorf("the arguments were not sent: they have %s, which stands for a secret that the console does not show. "+
			"Write the whole value in its place, or leave the arguments as they were", redact.Mark)
	}
	given.Arguments = json.RawMessage(posted)
	return given, nil
}

// questionFields returns the fields of a question.
func (c waitPages) questionFields(wait canister.Wait, typed url.Values) part {
	question, err := waits.Question(wait)
	if err != nil || question.Schema == nil {
		return nil
	}
	return c.console.clean.schemaFields(question.Schema, "w-"+wait.ID+"-", typed)
}

// answer answers a wait. If the wait does not accept the answer, the page has the form again with the same
// values.
func (c waitPages) answer(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	end := unfinished{Info: info}
	wait, err := c.openWait(r, &end)
	given := canister.Answer{}
	if err == nil {
		given, err = c.answerOf(r.PostForm, p, &end, wait)
	}
	if err == nil {
		ctx, cancel := actContext(w, r, actTime)
		defer cancel()
		if c.console.runs(info) {
			c.console.prewatch(ctx, info.ID)
			err = admit(ctx, c.console, httpapi.Entry{Conversation: info.ID, Canister: given}, func(ctx context.Context) error {
				return c.console.Engine.Answer(ctx, info.ID, given)
			})
		} else {
			err = waits.Answer(ctx, c.console.Store, info.ID, given, c.console.Now())
		}
	}
	isOver := errors.Is(err, waits.ErrNotOpen)
	if isOver {
		err = fmt.Errorf("the wait was answered already, or its time is over: %w", err)
	}
	c.console.record(r, p, "answer", info.ID, err, "wait", r.PathValue("wait"), "verdict", cmp.Or(string(given.Verdict), r.PostForm.Get("verdict")))
	switch {
	case wait.ID == "" && !isOver:
		c.console.fail(w, r, c.console.unread.hide(r.Context(), p, err))
	case leave(c.console, r, p, "Answered.", err) && !isOver:
		c.console.show(w, r, p, "Waiting", el("h1", text("Waiting")), c.waitItem(r.Context(), p, &end, wait, r.PostForm),
			el("p", el("a", href(Prefix+"/waiting"), text("All that waits"))))
	default:
		http.Redirect(w, r, Prefix+"/waiting", http.StatusSeeOther)
	}
}

// openWait reads the end of a conversation and returns the wait of a request.
func (c waitPages) openWait(r *http.Request, end *unfinished) (canister.Wait, error) {
	if err := c.console.readEnd(r.Context(), end); err != nil {
		return canister.Wait{}, err
	}
	at := slices.IndexFunc(end.open, func(one canister.Wait) bool { return one.ID == r.PathValue("wait") })
	if at < 0 {
		return canister.Wait{}, waits.ErrNotOpen
	}
	return end.open[at], nil
}

// answerOf returns the answer in a form.
func (c waitPages) answerOf(form url.Values, p *person, end *unfinished, wait canister.Wait) (given canister.Answer, err error) {
	if why := mayAnswer(p, end.Info, wait); why != "" {
		return given, errors.New(why)
	}
	given = canister.Answer{Wait: wait.ID, Verdict: canister.Verdict(form.Get("verdict")), By: cmp.Or(p.Name, "console")}
	switch {
	case given.Verdict == canister.VerdictDeny:
		given.Reason = form.Get("reason")
	case given.Verdict == canister.VerdictChange && wait.For == canister.WaitApproval:
		call, _ := callOf(wait, end.canisters)
		return c.withArguments(given, argumentsOf(wait, call), form.Get("arguments"))
	case given.Verdict == canister.VerdictChange:
		return given, errors.New("only a call that waits for an approval can be allowed with other arguments")
	case given.Verdict == canister.VerdictDone:
		given.Content = canister.Texts(form.Get("result"))
	case given.Verdict == canister.VerdictAccept && wait.For == canister.WaitElicitation:
		question, err := waits.Question(wait)
		if err == nil && question.Schema != nil {
			given.Arguments, err = c.console.clean.schemaValues(question.Schema, form)
		}
		return given, err
	}
	return given, nil
}
