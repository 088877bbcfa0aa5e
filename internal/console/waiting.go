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
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/internal/listpage"
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
	for _, one := range list.all {
		for _, wait := range one.open {
			items = append(items, c.waitItem(r.Context(), p, one.Info, wait, one.canisters))
		}
	}
	c.console.showCurrent(w, p, "Waiting",
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

// waitItem returns a wait with its call and the form that answers it.
func (c waitPages) waitItem(ctx context.Context, p *person, info history.Info, wait canister.Wait, canisters []canister.Canister) part {
	wait.Question = json.RawMessage(c.console.Redact(string(wait.Question)))
	call, _ := callOf(wait, canisters)
	title := waitTitles[wait.For]
	if call.Name != "" {
		title += " " + call.Name
	}
	why := mayAnswer(p, info, wait)
	var answer part
	if why == "" {
		answer = c.answerForms(p, info, wait, call)
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
			when(wait.Arguments != "", group(el("p", text("The arguments are:")), pre(c.console.Redact(display.JSON([]byte(wait.Arguments)))))),
			when(strings.HasPrefix(question.URL, "https://") || strings.HasPrefix(question.URL, "http://"),
				el("p", text("Visit "), el("a", href(question.URL), attr("rel", "noreferrer noopener"), text(question.URL)))),
			when(question.URL != "", pre(c.console.Redact(question.URL))))
	}
	arguments := cmp.Or(wait.Arguments, call.Arguments)
	if call.Name == "" {
		return nil
	}
	ask := converse.Approval{Invocation: call, Tool: call.Name, Arguments: json.RawMessage(arguments)}
	if c.console.Roster != nil {
		if catalog, err := c.console.Roster.Latest(ctx); err == nil {
			if tool, ok := catalog.Find(call.Name); ok {
				ask.Ensemble, ask.Tool, ask.Definition, ask.ReadOnly = tool.Ensemble().Name(), tool.Definition().Name, tool.Definition(), tool.ReadOnly()
			}
		}
	}
	lines := rendering.Question(rendering.Style{Width: 100}, ask, ask.ReadOnly)
	return group(diffLines(c.console.Redact(strings.Join(lines, "\n"))), details(false, text("Arguments as JSON"), pre(c.console.Redact(display.JSON([]byte(arguments))))))
}

// diffLines returns lines, with the removed and the added ones marked.
func diffLines(lines string) part {
	var all []part
	for line := range strings.SplitSeq(lines, "\n") {
		switch bare := strings.TrimLeft(line, " │|"); {
		case strings.HasPrefix(bare, "+ "):
			all = append(all, el("ins", text(line)), text("\n"))
		case strings.HasPrefix(bare, "- "):
			all = append(all, el("del", text(line)), text("\n"))
		default:
			all = append(all, text(line+"\n"))
		}
	}
	return el("pre", group(attr("tabindex", "0"), class("diff"), group(all...)))
}

// answerForms returns the forms with the answers that a wait accepts.
func (c waitPages) answerForms(p *person, info history.Info, wait canister.Wait, call canister.Invocation) part {
	form := func(verdict canister.Verdict, parts ...part) part {
		return c.console.form(p, fmt.Sprintf("/waiting/%s/%s", url.PathEscape(info.ID), url.PathEscape(wait.ID)), class("stack"),
			el("input", attr("type", "hidden"), attr("name", "verdict"), attr("value", string(verdict))), group(parts...))
	}
	named := func(s string) part { return el("button", text(s)) }
	arguments := display.JSON([]byte(cmp.Or(wait.Arguments, call.Arguments)))
	switch wait.For {
	case canister.WaitApproval:
		return el("div", class("answers"), form(canister.VerdictAllow, named("Allow this call")),
			form(canister.VerdictDeny, el("button", class("danger"), text("Deny this call")),
				details(false, text("Reason of the denial"), labelled("reason", wait.ID, "Reason, which the model reads", ""))),
			details(false, text("Allow with other arguments"), form(canister.VerdictChange, labelled("arguments", wait.ID, "Arguments as JSON", arguments), named("Allow with these arguments"))))
	case canister.WaitOutcome:
		return el("div", class("answers"),
			details(true, text("It was made"), form(canister.VerdictDone, labelled("result", wait.ID, "Its result", ""), named("Report the result"))),
			form(canister.VerdictUnknown, named("The outcome stays unknown")),
			form(canister.VerdictAllow, el("button", class("danger"), text("Make the call again, possibly for the second time"))))
	case canister.WaitElicitation:
		return el("div", class("answers"), form(canister.VerdictAccept, questionFields(wait), named("Answer")),
			form(canister.VerdictDecline, named("Decline")), form(canister.VerdictCancel, named("Dismiss")))
	}
	return form(canister.VerdictCancel, named("End the pause"))
}

// labelled returns a text area whose ID does not collide with those of other waits.
func labelled(name, wait, label, value string) part {
	id := "w-" + name + "-" + wait
	return group(el("label", attr("for", id), text(label)), el("textarea", attr("id", id), attr("name", name), attr("rows", "3"), raw(value)))
}

// questionFields returns the fields of a question.
func questionFields(wait canister.Wait) part {
	question, err := waits.Question(wait)
	if err != nil || question.Schema == nil {
		return nil
	}
	return schemaFields(question.Schema, "w-"+wait.ID+"-")
}

// answer answers a wait.
func (c waitPages) answer(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	given, err := c.answerOf(r, p, info)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), actTime)
		defer cancel()
		if c.console.runs(info) {
			c.console.expect(ctx, info.ID)
			err = c.console.Engine.Answer(ctx, info.ID, given)
		} else {
			err = waits.Answer(ctx, c.console.Store, info.ID, given, c.console.Now())
		}
	}
	if errors.Is(err, waits.ErrNotOpen) {
		err = fmt.Errorf("the wait was answered already, or its time is over: %w", err)
	}
	c.console.record(r, p, "answer", info.ID, err, "wait", r.PathValue("wait"), "verdict", r.PostForm.Get("verdict"))
	c.console.back(w, r, p, "/waiting", "Answered.", err)
}

// answerOf returns the answer in a form.
func (c waitPages) answerOf(r *http.Request, p *person, info history.Info) (given canister.Answer, err error) {
	_, canisters, err := history.Tail(r.Context(), c.console.Store, info.ID, func(_ int, end []canister.Canister) bool {
		return slices.ContainsFunc(end, func(one canister.Canister) bool { return one.Kind() == canister.KindAssistant })
	})
	if err != nil {
		return given, err
	}
	open := waits.Open(info.ID, canisters, c.console.Now())
	at := slices.IndexFunc(open, func(one canister.Wait) bool { return one.ID == r.PathValue("wait") })
	if at < 0 {
		return given, waits.ErrNotOpen
	}
	wait := open[at]
	if why := mayAnswer(p, info, wait); why != "" {
		return given, errors.New(why)
	}
	given = canister.Answer{Wait: wait.ID, Verdict: canister.Verdict(r.PostForm.Get("verdict")), By: cmp.Or(p.Name, "console")}
	switch {
	case given.Verdict == canister.VerdictDeny:
		given.Reason = r.PostForm.Get("reason")
	case given.Verdict == canister.VerdictChange:
		given.Arguments = json.RawMessage(r.PostForm.Get("arguments"))
	case given.Verdict == canister.VerdictDone:
		given.Content = canister.Texts(r.PostForm.Get("result"))
	case given.Verdict == canister.VerdictAccept && wait.For == canister.WaitElicitation:
		question, err := waits.Question(wait)
		if err != nil {
			return given, err
		}
		if question.Schema != nil {
			given.Arguments, err = schemaValues(question.Schema, r.PostForm)
		}
		return given, err
	}
	return given, nil
}

// schemaFields returns inputs for the properties of a flat schema; none for another schema.
// prefix begins the IDs of the inputs.
func schemaFields(schema json.RawMessage, prefix string) part {
	fields, err := forms.Fields(schema)
	if err != nil {
		return nil
	}
	var all []part
	for i := range fields {
		f, label := &fields[i], fields[i].Label()
		if f.Required {
			label += " (required)"
		}
		at, value, name := fmt.Sprintf("%s%d", prefix, i), "", attr("name", "v-"+f.Name)
		if f.Default != nil {
			value = forms.Text(f.Default)
		}
		input := el("input", attr("id", at), name, attr("value", value), when(f.IsNumber(), attr("inputmode", "decimal")))
		if choices := f.Choices(); len(choices) > 0 && !f.IsList() {
			options := []part{option("", "", value)}
			for _, choice := range choices {
				options = append(options, option(choice.Value, choice.Label(), value))
			}
			input = el("select", attr("id", at), name, group(options...))
		} else if f.IsBoolean() {
			input = el("select", attr("id", at), name, option("", "", value), option("true", "yes", value), option("false", "no", value))
		}
		all = append(all, el("p", class("field"), el("label", attr("for", at), text(label)), input,
			when(f.Description != "", el("span", class("faint"), text(f.Description)))))
	}
	return group(all...)
}

// schemaValues returns the object that such inputs hold.
func schemaValues(schema json.RawMessage, values url.Values) (json.RawMessage, error) {
	fields, err := forms.Fields(schema)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	for i := range fields {
		f := &fields[i]
		value, err := f.Parse(values.Get("v-" + f.Name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Label(), err)
		}
		if value != nil {
			object[f.Name] = value
		}
	}
	return json.Marshal(object)
}
