// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/internal/readable"
	"github.com/consort-go/consort/internal/transcript"
)

// longText is how many bytes of arguments or of a result are open at first.
const longText = 2000

// labels are the headings of the canisters that are not calls.
var labels = map[canister.Kind]string{
	canister.KindUser: "User", canister.KindAssistant: "Assistant", canister.KindSupervisor: "Instructions", canister.KindDocument: "Document",
	canister.KindInvocation: "Call", canister.KindResult: "Result", canister.KindIntent: "Intent", canister.KindWait: "Wait", canister.KindAnswer: "Answer",
}

// entryID returns the ID of the element of an entry.
func entryID(e transcript.Entry) string { return fmt.Sprintf("c%d", e.Number) }

// items returns the items of a timeline. model wrote the messages before them; "" if it is not
// known.
func (c conversationPages) items(p *person, info history.Info, all []transcript.Entry, model string) []part {
	together := spansOf(all)
	var items []part
	for _, e := range all {
		shown := extra{bar: together[e.Number]}
		if a, ok := e.Canister.(canister.Assistant); ok {
			if trace := c.console.traceLink(info, notes.Trace(a), "trace"); trace != nil {
				shown.facts = append(shown.facts, el("li", trace))
			}
			if a.Model != "" && model != "" && a.Model != model {
				shown.facts = append(shown.facts, el("li", class("changed"), text(c.console.Redact("the model changed: before, it was "+model))))
			}
			model = cmp.Or(a.Model, model)
		}
		items = append(items, c.entry(p, info, e, shown))
	}
	return items
}

// extra is what an item has that its canisters do not tell.
type extra struct {
	bar   part // when a call ran; may be nil
	facts []part
}

// entry returns an item of a timeline: a message, or a call with its result.
func (c conversationPages) entry(p *person, info history.Info, e transcript.Entry, shown extra) part {
	kind, content, remarks := string(e.Kind()), part(nil), []string(nil)
	title := labels[e.Kind()]
	switch one := e.Canister.(type) {
	case canister.Invocation:
		title = "Call of " + one.Name
		content, remarks = c.call(p, info, e, one)
		content = group(shown.bar, content)
		if result, ok := e.Result.Canister.(canister.Result); ok && result.Failed() {
			kind += " failed"
		}
	case canister.Assistant:
		content, remarks = c.contents(info, e.Number, one.Content), c.exchange(one)
	case canister.User:
		content = c.contents(info, e.Number, one.Content)
	case canister.Document:
		if title += " " + one.Title; one.Metadata[notes.CompactionKey] != nil {
			title = "Compaction"
		}
		content = details(false, text("Text"), c.contents(info, e.Number, one.Content))
	case canister.Supervisor:
		content = details(false, text("Text"), c.contents(info, e.Number, one.Content))
	default: // a result or a note whose call is not on this page
		of := c.console.clean.partOf(e.Numbered)
		content = details(false, text(of.Heading()), pre(c.console.Redact(of.Text)))
	}
	var facts []part
	for _, remark := range remarks {
		facts = append(facts, el("li", text(c.console.Redact(remark))))
	}
	facts = append(facts, shown.facts...)
	number := strconv.Itoa(e.Number)
	return el("li", id(entryID(e)), class("entry "+kind),
		el("h2", el("a", attr("href", "#"+entryID(e)), class("number"), attr("aria-label", "Canister "+number), text(number)), text(" "+c.console.Redact(title))),
		el("ul", group(class("remarks"), el("li", moment(e.Header().Time)), group(facts...))),
		content,
		c.forkForm(p, info, e))
}

// exchange returns what is known about a message of the model.
func (c conversationPages) exchange(a canister.Assistant) []string {
	var remarks []string
	if a.Model != "" {
		remarks = append(remarks, a.Model)
	}
	if a.Usage != nil {
		remarks = append(remarks, fmt.Sprintf("%d tokens in (%d cached), %d out", a.Usage.Input, a.Usage.Cached, a.Usage.Output))
	}
	if money, ok := c.console.cost(a); ok {
		remarks = append(remarks, c.console.money(money))
	}
	if a.Finish != "" && a.Finish != canister.FinishStop && a.Finish != canister.FinishInvocations {
		remarks = append(remarks, "ended: "+string(a.Finish))
	}
	return remarks
}

// call returns the arguments, the notes, the calls of its own and the result of a call.
func (c conversationPages) call(p *person, info history.Info, e transcript.Entry, call canister.Invocation) (content part, remarks []string) {
	if took, ok := e.Took(); ok {
		remarks = append(remarks, "took "+short(took))
	}
	attempts := 0
	var notes []part
	for _, note := range e.Notes {
		if note.Kind() == canister.KindIntent {
			attempts++
		}
		of := c.console.clean.partOf(note)
		notes = append(notes, el("li", text(strconv.Itoa(note.Number)+" "+c.console.Redact(of.Heading())+" · "), moment(note.Header().Time),
			when(of.Text != "", pre(c.console.Redact(of.Text)))))
	}
	if attempts > 1 {
		remarks = append(remarks, fmt.Sprintf("%d attempts", attempts))
	}
	remarks = append(remarks, e.Decisions(time.UTC)...)
	if call.Parent != "" {
		remarks = append(remarks, "called by the program of another call")
	}
	arguments := c.console.clean.shownJSON(call.Arguments)
	changed := c.console.clean.shownJSON(e.Changed())
	parts := []part{
		details(len(arguments) < longText, text("Arguments"), pre(arguments)),
		when(changed != "", details(true, text("Called with"), pre(changed))),
		when(len(notes) > 0, details(false, text(fmt.Sprintf("Intents, waits and answers (%d)", len(notes))), el("ol", group(class("notes"), group(notes...))))),
	}
	inner := c.items(p, info, e.Calls, "")
	parts = append(parts, when(len(inner) > 0, details(false, text(fmt.Sprintf("Calls of this program (%d)", len(inner))), el("ol", class("timeline"), group(inner...)))))
	result, ok := e.Result.Canister.(canister.Result)
	if !ok {
		return group(append(parts, el("p", class("faint"), text("No result yet.")))...), remarks
	}
	summary, folded := "Result", e.Folded()
	if folded != "" {
		summary += " · " + folded
	}
	if result.Failed() {
		summary += " · " + result.Code
		remarks = append(remarks, result.Code)
	}
	said := c.console.Redact(display.Contents(result.Content))
	return group(append(parts, details(folded == "" && len(said) < longText, text(c.console.Redact(summary)), pre(said), c.images(info, e.Result.Number, result.Content)))...), remarks
}

// contents returns the content of a message, in which text is Markdown.
func (c conversationPages) contents(info history.Info, number int, contents []canister.Content) part {
	var all []part
	for _, one := range contents {
		switch one := one.(type) {
		case canister.TextContent:
			all = append(all, el("div", class("text"), markdown(readable.Fragment(c.console.Redact(one.Text), true))))
		case canister.ImageContent: // below
		default:
			all = append(all, pre(c.console.Redact(display.Content(one))))
		}
	}
	return group(append(all, c.images(info, number, contents))...)
}

// pictures are the media types of images that pages show. They have no scripts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// images returns the images of a canister, which the console serves itself.
func (c conversationPages) images(info history.Info, number int, contents []canister.Content) part {
	var all []part
	for i, one := range contents {
		if image, ok := one.(canister.ImageContent); ok {
			name := c.console.Redact(display.Content(image))
			if slices.Contains(pictures, http.DetectContentType(image.Data)) {
				all = append(all, el("p", el("img", attr("alt", name), attr("loading", "lazy"), attr("src", fmt.Sprintf("%s/images/%d/%d", pathOf(info.ID), number, i)))))
				continue
			}
			all = append(all, el("p", class("faint"), text(name)))
		}
	}
	return group(all...)
}

// image sends an image of a canister.
func (c conversationPages) image(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	c.recordReading(r, p, info)
	number, _ := strconv.Atoi(r.PathValue("number"))
	index, _ := strconv.Atoi(r.PathValue("index"))
	for one, err := range c.console.Store.Read(r.Context(), info.ID, max(0, number-1)) {
		if contents := contentAt(one, err, index); contents != nil {
			if kind := http.DetectContentType(contents); slices.Contains(pictures, kind) {
				w.Header().Set("Content-Type", kind)
				_, _ = w.Write(contents)
				return
			}
		}
		break
	}
	c.console.refuse(w, r, http.StatusNotFound, "There is no such image.")
}

func contentAt(one canister.Canister, err error, index int) []byte {
	if err != nil {
		return nil
	}
	if contents := canister.ContentOf(one); index >= 0 && index < len(contents) {
		if image, ok := contents[index].(canister.ImageContent); ok {
			return image.Data
		}
	}
	return nil
}

// forkForm returns the button that forks a conversation after an entry.
func (c conversationPages) forkForm(p *person, info history.Info, e transcript.Entry) part {
	if !p.Role.May(Answer) || e.Kind() != canister.KindUser && e.Kind() != canister.KindAssistant {
		return nil
	}
	at := e.Number
	return c.console.form(p, conversationPath(info.ID)+"/fork", class("inline"), hidden("at", strconv.Itoa(at)),
		el("button", class("plain"), attr("aria-label", fmt.Sprintf("Fork from here, after canister %d", at)), text("Fork from here")))
}
