// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/tokenestimate"
	"github.com/consort-go/consort/invoker"
)

// offer is the part of the roster that a person may use.
type offer struct {
	tools []*ensemble.Tool
	aside []ensemble.Aside
	away  []ensemble.Away
}

// offerTo returns the tools that a person may use, as a model is offered them.
func (c toolPages) offerTo(ctx context.Context) (o offer, err error) {
	if c.console.Roster == nil {
		return o, nil
	}
	catalog, err := c.console.Roster.Latest(ctx)
	if err != nil {
		return o, err
	}
	o = offer{catalog.Tools(), catalog.Aside(), catalog.Away()}
	if c.console.Shown != nil {
		o.tools, o.aside = c.console.Shown(catalog)
	}
	if c.console.Select == nil {
		return o, nil
	}
	part := c.console.Select(ctx)
	if part == nil {
		return o, nil
	}
	var allowed []*ensemble.Tool
	for _, tool := range o.tools {
		if part.ContainsTool(tool) {
			allowed = append(allowed, tool)
		}
	}
	o.tools = allowed
	return o, nil
}

func (c toolPages) toolsPage(w http.ResponseWriter, r *http.Request, p *person) {
	o, err := c.offerTo(r.Context())
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	search := strings.ToLower(r.URL.Query().Get("q"))
	var rows []part
	var sum int64
	for _, tool := range o.tools {
		d := tool.Definition()
		if !strings.Contains(strings.ToLower(tool.Name()+" "+d.Title+" "+d.Description), search) {
			continue
		}
		tokens := tokenestimate.InTool(tool.Name(), d.Description, d.InputSchema)
		sum += tokens
		rows = append(rows, row(el("a", href(Prefix+"/tools/"+url.PathEscape(tool.Name())), text(tool.Name())), text(tool.Ensemble().Name()),
			text(firstLine(c.console.Redact(d.Description))), text(strings.Join(hintsOf(tool), ", ")), text(strconv.FormatInt(tokens, 10))))
	}
	c.console.show(w, r, p, "Tools",
		el("h1", text("Tools")),
		el("form", attr("method", "get"), action(Prefix+"/tools"), class("search"), attr("role", "search"), c.console.field("q", "Words", r.URL.Query().Get("q"), attr("type", "search")), el("button", text("Search"))),
		el("p", text(fmt.Sprintf("%d tools, about %d tokens of each request. ", len(rows), sum)), el("a", href(Prefix+"/library"), text("Resources and prompts"))),
		when(len(rows) > 0, table("Tools that a model is offered", []string{"Name", "Server", "Description", "Hints", "Tokens"}, rows...)),
		when(p.Role.May(Audit), asides(c.console, o)))
}

// asides returns the tools that are not offered, and the servers that are away.
func asides(c *Console, o offer) part {
	var aside, away []part
	for _, a := range o.aside {
		aside = append(aside, row(text(a.Ensemble), text(a.Tool), text(c.Redact(a.Reason))))
	}
	for _, a := range o.away {
		away = append(away, row(text(a.Ensemble), text(c.clean.errorText(a.Err))))
	}
	return group(
		when(len(aside) > 0, el("section", el("h2", text("Set aside")), table("What is set aside", []string{"Server", "Name", "Reason"}, aside...))),
		when(len(away) > 0, el("section", el("h2", text("Away")), table("Servers that could not be reached", []string{"Server", "Error"}, away...))))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return textcut.Runes(line, 200)
}

func hintsOf(tool *ensemble.Tool) []string {
	var all []string
	switch hints := tool.Definition().Hints; {
	case tool.ReadOnly():
		all = append(all, "changes nothing")
	case hints.ReadOnly:
		all = append(all, "says it changes nothing")
	case hints.MayDestroy():
		all = append(all, "may destroy")
	}
	if tool.Repeatable() {
		all = append(all, "repeatable")
	}
	return all
}

// findTool returns a tool that the person may use, or writes that there is none.
func (c toolPages) findTool(w http.ResponseWriter, r *http.Request) *ensemble.Tool {
	o, err := c.offerTo(r.Context())
	if err != nil {
		c.console.fail(w, r, err)
		return nil
	}
	for _, tool := range o.tools {
		if tool.Name() == r.PathValue("name") {
			return tool
		}
	}
	c.console.refuse(w, r, http.StatusNotFound, "There is no such tool.")
	return nil
}

func (c toolPages) toolPage(w http.ResponseWriter, r *http.Request, p *person) {
	if tool := c.findTool(w, r); tool != nil {
		c.showTool(w, r, p, tool, r.URL.Query(), nil)
	}
}

// showTool writes the page of a tool, with the outcome of a call.
func (c toolPages) showTool(w http.ResponseWriter, r *http.Request, p *person, tool *ensemble.Tool, values url.Values, outcome part) {
	d := tool.Definition()
	tokens := tokenestimate.InTool(tool.Name(), d.Description, d.InputSchema)
	c.console.show(w, r, p, tool.Name(),
		el("h1", text(tool.Name())),
		outcome,
		el("dl", class("facts"),
			el("dt", text("Server")), el("dd", text(tool.Ensemble().Name())),
			when(d.Title != "", el("dt", text("Title")), el("dd", text(c.console.Redact(d.Title)))),
			el("dt", text("Hints")), el("dd", text(cmp.Or(strings.Join(hintsOf(tool), ", "), "none"))),
			el("dt", text("Tokens")), el("dd", text(strconv.FormatInt(tokens, 10))),
			when(len(d.Needs) > 0, el("dt", text("Needs")), el("dd", text(strings.Join(d.Needs, ", "))))),
		el("h2", text("What the model reads")), pre(c.console.Redact(d.Description)),
		details(false, text("Arguments, as JSON Schema"), pre(c.console.clean.shownJSON(string(d.InputSchema)))),
		when(len(d.OutputSchema) > 0, details(false, text("Result, as JSON Schema"), pre(c.console.clean.shownJSON(string(d.OutputSchema))))),
		when(p.Role.May(Answer) && c.console.Call != nil, c.callForms(p, tool, values)))
}

// callForms returns the forms that call a tool: one with a field for each argument, if the
// schema is flat, and one for any JSON.
func (c toolPages) callForms(p *person, tool *ensemble.Tool, values url.Values) part {
	to, d := "/tools/"+url.PathEscape(tool.Name()), tool.Definition()
	fields, err := forms.Fields(d.InputSchema)
	flat := err == nil
	for i := range fields {
		flat = flat && fields[i].Type != "object" && !fields[i].IsList() && fields[i].Type != ""
	}
	button := el("button", text("Call the tool"))
	return el("section", el("h2", text("Call it")),
		el("p", class("faint"), text("The call is made for you, by the rules for clients, and is recorded.")),
		when(flat, c.console.form(p, to, class("stack"), hidden(formID, rand.Text()), hidden("form", "fields"), c.console.clean.schemaFields(d.InputSchema, "a-", values), button)),
		details(!flat || values.Has("arguments"), text("Arguments as JSON"), c.console.form(p, to, class("stack"), hidden(formID, rand.Text()), area("arguments", "Arguments", cmp.Or(c.console.clean.unlessSecret(values.Get("arguments")), "{}"), attr("spellcheck", "false")), el("button", text("Call with this JSON")))))
}

// callTool calls a tool for the person and shows the outcome.
func (c toolPages) callTool(w http.ResponseWriter, r *http.Request, p *person) {
	tool := c.findTool(w, r)
	if tool == nil {
		return
	}
	arguments, err := json.RawMessage(r.PostForm.Get("arguments")), error(nil)
	if r.PostForm.Get("form") == "fields" {
		if arguments, err = c.console.clean.schemaValues(tool.Definition().InputSchema, r.PostForm); err != nil {
			err = invoker.Failf(invoker.InvalidArguments, "%s", err)
		}
	}
	var output invoker.Output
	began := c.console.Now()
	switch {
	case c.console.Call == nil:
		err = invoker.Failf(invoker.Denied, "This console calls no tools.")
	case err == nil && !json.Valid(arguments):
		err = invoker.Failf(invoker.InvalidArguments, "The arguments are not JSON.")
	case err == nil:
		err = invoker.Failf(invoker.Conflict, "This form was sent already, and the call is not made again. What the first call did is in the audit. To make another call, send the form below.")
		_ = c.console.sessions.formOf(p.session, r).send("", func(canister.User) error { err = nil; return nil })
		if err == nil {
			output, err = c.console.Call(r.Context(), tool, arguments)
		}
	}
	c.console.record(r, p, "call", "", err, "tool", tool.Name())
	took := el("p", class("faint"), text("It took "+short(c.console.Now().Sub(began))+"."))
	if err != nil {
		failure := invoker.AsFailure(err)
		c.showTool(w, r, p, tool, r.PostForm, el("section", class("outcome failed"), attr("role", "alert"), el("h2", text("The call failed: "+string(failure.Code))), pre(c.console.Redact(failure.Message)), took))
		return
	}
	c.showTool(w, r, p, tool, r.PostForm, el("section", class("outcome"), attr("role", "status"), el("h2", text("Result")), pre(c.console.Redact(display.Contents(output.Content))), took))
}
