// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"

	"github.com/consort-go/consort/ensemble"
)

// libraryPage shows the resources and prompts that a person may use.
func (c serverPages) libraryPage(w http.ResponseWriter, r *http.Request, p *person) {
	if c.console.Roster == nil {
		c.console.refuse(w, r, http.StatusNotFound, "There are no servers.")
		return
	}
	list := struct {
		resources func() (*ensemble.Resources, error)
		prompts   func() (*ensemble.Prompts, error)
	}{func() (*ensemble.Resources, error) { return c.console.Roster.Resources(r.Context()) }, func() (*ensemble.Prompts, error) { return c.console.Roster.Prompts(r.Context()) }}
	if c.console.Select != nil {
		if part := c.console.Select(r.Context()); part != nil {
			list.resources = func() (*ensemble.Resources, error) { return part.Resources(r.Context()) }
			list.prompts = func() (*ensemble.Prompts, error) { return part.Prompts(r.Context()) }
		}
	}
	resources, err := list.resources()
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	prompts, err := list.prompts()
	if err != nil {
		c.console.fail(w, r, err)
		return
	}
	var found, templates, asked []part
	for _, one := range resources.Resources {
		found = append(found, row(el("code", text(one.URI)), text(one.Ensemble), text(c.console.Redact(one.Name)), text(firstLine(c.console.Redact(one.Description))), text(one.MIME)))
	}
	for _, one := range resources.Templates {
		templates = append(templates, row(el("code", text(one.URI)), text(one.Ensemble), text(c.console.Redact(one.Name)), text(firstLine(c.console.Redact(one.Description)))))
	}
	for _, one := range prompts.Prompts {
		var arguments string
		for _, a := range one.Arguments {
			arguments += a.Name + " "
		}
		asked = append(asked, row(text(one.FullName()), text(one.Ensemble), text(firstLine(c.console.Redact(one.Description))), text(arguments)))
	}
	empty := func(rows []part, what string) part {
		return when(len(rows) == 0, el("p", text("There are no "+what+".")))
	}
	c.console.show(w, p, "Resources and prompts",
		el("h1", text("Resources and prompts")),
		el("h2", text("Resources")), empty(found, "resources"), when(len(found) > 0, table("Resources", []string{"URI", "Server", "Name", "Description", "Type"}, found...)),
		when(len(templates) > 0, el("h2", text("Templates")), table("Templates", []string{"Template", "Server", "Name", "Description"}, templates...)),
		el("h2", text("Prompts")), empty(asked, "prompts"), when(len(asked) > 0, table("Prompts", []string{"Name", "Server", "Description", "Arguments"}, asked...)))
}
