// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// partsShown bounds the parts of a resource, and the messages of a prompt, that a page shows.
const partsShown = 100

// library is the part of the roster's resources and prompts that a person may use.
type library interface {
	Resources(context.Context) (*ensemble.Resources, error)
	Prompts(context.Context) (*ensemble.Prompts, error)
	ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error)
	GetPrompt(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error)
}

// of returns the library of a person, and the context of its requests.
func (c libraryPages) of(r *http.Request) (context.Context, library) {
	ctx := invoker.WithCall(r.Context(), &invoker.Call{}) // without a person to ask
	if c.console.Trust != nil {
		ctx = c.console.Trust(ctx)
	}
	if c.console.Select != nil {
		if part := c.console.Select(r.Context()); part != nil {
			return ctx, part
		}
	}
	return ctx, c.console.Roster
}

// withLibrary serves a page about the library, if there is one.
func (c libraryPages) withLibrary(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, p *person) {
		if c.console.Roster == nil {
			c.console.refuse(w, r, http.StatusNotFound, "There are no servers.")
			return
		}
		serve(w, r, p)
	}
}

const resourcePath, promptPath = "/library/resource", "/library/prompts/"

// libraryPage shows the resources and prompts that a person may use.
func (c libraryPages) libraryPage(w http.ResponseWriter, r *http.Request, p *person) {
	ctx, from := c.of(r)
	resources, err := from.Resources(ctx)
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	prompts, err := from.Prompts(ctx)
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	shown := func(s string) part { return text(firstLine(c.console.Redact(s))) }
	address := func(uri string) part { return c.console.linked(resourceAddress(uri), uri) }
	var found, templates, asked []part
	for _, one := range resources.Resources {
		found = append(found, row(address(one.URI), text(one.Ensemble), shown(cmp.Or(one.Title, one.Name)), shown(one.Description), shown(one.MIME)))
	}
	for _, one := range resources.Templates {
		templates = append(templates, row(address(one.URI), text(one.Ensemble), shown(cmp.Or(one.Title, one.Name)), shown(one.Description)))
	}
	for _, one := range prompts.Prompts {
		var arguments []string
		for _, a := range one.Arguments {
			arguments = append(arguments, a.Name)
		}
		asked = append(asked, row(el("a", href(Prefix+promptPath+url.PathEscape(one.FullName())), text(one.FullName())), text(one.Ensemble),
			shown(one.Description), shown(strings.Join(arguments, " "))))
	}
	list := func(title, none string, heads []string, rows []part) part {
		return group(el("h2", text(title)), when(len(rows) == 0, el("p", text(none))), when(len(rows) > 0, table(title, heads, rows...)))
	}
	c.console.show(w, r, p, "Resources and prompts",
		el("h1", text("Resources and prompts")),
		list("Resources", "There are no resources.", []string{"URI", "Server", "Name", "Description", "Type"}, found),
		when(len(templates) > 0, list("Templates", "", []string{"Template", "Server", "Name", "Description"}, templates)),
		list("Prompts", "There are no prompts.", []string{"Name", "Server", "Description", "Arguments"}, asked),
		when(p.Role.May(Audit), asides(c.console, offer{aside: append(resources.Aside, prompts.Aside...), away: append(resources.Away, prompts.Away...)})))
}

func resourceAddress(uri string) string {
	return Prefix + resourcePath + "?" + url.Values{"uri": {uri}}.Encode()
}

// resourcePage shows the form that reads a resource.
func (c libraryPages) resourcePage(w http.ResponseWriter, r *http.Request, p *person) {
	c.showResource(w, r, p, r.URL.Query().Get("uri"), nil)
}

func (c libraryPages) showResource(w http.ResponseWriter, r *http.Request, p *person, uri string, content part) {
	isTemplate := strings.Contains(uri, "{")
	c.console.show(w, r, p, "Resource",
		el("h1", text("Resource")),
		when(!p.Role.May(Answer), el("p", el("code", text(c.console.Redact(uri)))), el("p", class("faint"), text("Your role does not permit reading it."))),
		when(p.Role.May(Answer), c.console.form(p, resourcePath, class("stack"),
			c.console.field("uri", "URI", uri, attr("required", ""), attr("spellcheck", "false"), attr("maxlength", "8192")),
			when(isTemplate, el("p", class("faint"), text("Write values in place of the parts in braces."))),
			el("button", text("Read the resource")))),
		content)
}

// readResource reads a resource for the person, and shows it or sends one of its parts.
func (c libraryPages) readResource(w http.ResponseWriter, r *http.Request, p *person) {
	uri, download, what := r.PostForm.Get("uri"), r.PostForm.Get("part"), "read_resource"
	if download != "" {
		what = "download_resource"
	}
	ctx, from := c.of(r)
	parts, err := from.ReadResource(ctx, uri)
	c.console.record(r, p, what, "", err, "uri", uri)
	if err != nil {
		c.showResource(w, r, p, uri, c.failed("The resource cannot be read", err))
		return
	}
	for i := range parts {
		parts[i] = redact.Resource(parts[i], c.console.Redact) // also its bytes
	}
	if index, wrong := strconv.Atoi(download); wrong == nil && index >= 0 && index < len(parts) {
		c.download(w, &parts[index], uri)
		return
	}
	var shown []part
	for i := range parts[:min(len(parts), partsShown)] {
		shown = append(shown, c.resourcePart(p, &parts[i], uri, i))
	}
	c.showResource(w, r, p, uri, group(when(len(parts) == 0, el("p", attr("role", "status"), text("The resource has no content."))), group(shown...), tooMany(len(parts))))
}

// failed returns the message for a person about a request that failed.
func (c libraryPages) failed(title string, err error) part {
	failure := invoker.AsFailure(err)
	return el("section", class("outcome failed"), attr("role", "alert"), el("h2", text(title+": "+string(failure.Code))), pre(c.console.Redact(failure.Message)))
}

func tooMany(n int) part {
	return when(n > partsShown, el("p", class("faint"), text(fmt.Sprintf("%d more are left out here.", n-partsShown))))
}

// resourcePart returns a part of a resource, which was redacted: its text, or the kind and size of its
// bytes. It has no button if the URI has a secret, because the form would have it too.
func (c libraryPages) resourcePart(p *person, one *canister.ResourceContent, uri string, index int) part {
	size, content := len(one.Text), pre(one.Text)
	if one.Blob != nil {
		size, content = len(one.Blob), el("p", text("These bytes are not shown as text."))
	}
	return el("section", class("outcome"), el("h2", text(c.console.Redact(cmp.Or(one.URI, uri)))),
		el("p", class("faint"), text(fmt.Sprintf("%s, %s", firstLine(kindOf(one)), display.Count(size, "byte")))),
		content,
		when(c.console.clean.unlessSecret(uri) != "", c.console.form(p, resourcePath, hidden("uri", uri), hidden("part", strconv.Itoa(index)),
			el("button", class("plain"), attr("aria-label", fmt.Sprintf("Download part %d", index+1)), text("Download")))))
}

// kindOf returns the media type that the server announced, or the one that the bytes look like.
func kindOf(one *canister.ResourceContent) string {
	if one.Blob != nil {
		return cmp.Or(one.MIME, http.DetectContentType(one.Blob))
	}
	return cmp.Or(one.MIME, "text")
}

// download sends a part of a resource, which was redacted, as a file. A browser does not show it,
// whatever it is.
func (c libraryPages) download(w http.ResponseWriter, one *canister.ResourceContent, uri string) {
	header, content := w.Header(), one.Blob
	if content == nil {
		content = []byte(one.Text)
	}
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(c.console.Redact(cmp.Or(one.URI, uri)))}))
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the reader may have left
}

// fileName returns a name for the file of a resource, of ordinary characters.
func fileName(uri string) string {
	const most = 80
	base := path.Base(strings.TrimRight(uri, "/"))
	if u, err := url.Parse(uri); err == nil {
		base = path.Base(cmp.Or(u.Path, u.Opaque, u.Host))
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, base)
	if name = strings.TrimLeft(name[:min(len(name), most)], "._-"); name == "" {
		return "resource"
	}
	return name
}

// findPrompt returns a prompt that the person may use, or writes that there is none.
func (c libraryPages) findPrompt(w http.ResponseWriter, r *http.Request) *ensemble.Prompt {
	ctx, from := c.of(r)
	all, err := from.Prompts(ctx)
	if err != nil {
		c.console.fail(w, r, err)
		return nil
	}
	for i := range all.Prompts {
		if all.Prompts[i].FullName() == r.PathValue("name") {
			return &all.Prompts[i]
		}
	}
	c.console.refuse(w, r, http.StatusNotFound, "There is no such prompt.")
	return nil
}

func (c libraryPages) promptPage(w http.ResponseWriter, r *http.Request, p *person) {
	if prompt := c.findPrompt(w, r); prompt != nil {
		c.showPrompt(w, r, p, prompt, nil, nil)
	}
}

// showPrompt writes the page of a prompt, with its form and its messages.
func (c libraryPages) showPrompt(w http.ResponseWriter, r *http.Request, p *person, prompt *ensemble.Prompt, values map[string]string, messages part) {
	var fields []part
	for i, a := range prompt.Arguments {
		at, label := fmt.Sprintf("a-%d", i), cmp.Or(a.Title, a.Name)
		if a.Required {
			label += " (required)"
		}
		fields = append(fields, el("p", class("field"), el("label", attr("for", at), text(c.console.Redact(label))),
			el("input", id(at), attr("name", c.console.clean.inputName(a.Name, i)), attr("value", c.console.clean.unlessSecret(values[a.Name])), when(a.Required, attr("required", ""))),
			when(a.Description != "", el("span", class("faint"), text(c.console.Redact(a.Description))))))
	}
	c.console.show(w, r, p, "Prompt",
		el("h1", text(prompt.FullName())), messages,
		el("dl", class("facts"), el("dt", text("Server")), el("dd", text(prompt.Ensemble)),
			when(prompt.Title != "", el("dt", text("Title")), el("dd", text(c.console.Redact(prompt.Title))))),
		when(prompt.Description != "", pre(c.console.Redact(prompt.Description))),
		when(!p.Role.May(Answer), el("p", class("faint"), text("Your role does not permit getting its messages."))),
		when(p.Role.May(Answer), el("section", el("h2", text("Get its messages")),
			c.console.form(p, promptPath+url.PathEscape(prompt.FullName()), class("stack"), group(fields...), el("button", text("Get the messages"))))))
}

// getPrompt gets the messages of a prompt for the person, and shows them.
func (c libraryPages) getPrompt(w http.ResponseWriter, r *http.Request, p *person) {
	prompt := c.findPrompt(w, r)
	if prompt == nil {
		return
	}
	values := map[string]string{}
	for i, a := range prompt.Arguments {
		if value := r.PostForm.Get(c.console.clean.inputName(a.Name, i)); value != "" {
			values[a.Name] = value
		}
	}
	ctx, from := c.of(r)
	got, err := from.GetPrompt(ctx, prompt.FullName(), values)
	c.console.record(r, p, "get_prompt", "", err, "prompt", prompt.FullName(), "arguments", values)
	if err != nil {
		c.showPrompt(w, r, p, prompt, values, c.failed("The prompt cannot be got", err))
		return
	}
	var shown []part
	for _, message := range got.Messages[:min(len(got.Messages), partsShown)] {
		shown = append(shown, el("h3", text(firstLine(c.console.Redact(message.Role)))), pre(c.console.Redact(display.Contents(message.Content))))
	}
	c.showPrompt(w, r, p, prompt, values, el("section", class("outcome"), attr("role", "status"), el("h2", text("Messages")),
		when(got.Description != "", el("p", text(c.console.Redact(got.Description)))),
		when(len(got.Messages) == 0, el("p", text("The prompt has no messages."))), group(shown...), tooMany(len(got.Messages))))
}
