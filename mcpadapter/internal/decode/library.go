// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Resource decodes a description of a resource; it returns false if the description is invalid.
func Resource(raw json.RawMessage) (ensemble.Resource, bool) {
	m, err := wire.Members(raw)
	if err != nil {
		return ensemble.Resource{}, false
	}
	d := Object{Members: m}
	r := ensemble.Resource{
		URI: d.required("uri"), Name: d.Text("name"), Title: d.Text("title"), Description: d.Text("description"), MIME: d.Text("mimeType"),
		Metadata: Metadata(m, "uri", "name", "title", "description", "mimeType", "size"),
	}
	if size := m["size"]; size != nil && json.Unmarshal(size, &r.Size) != nil {
		r.Size = nil // a size that is not an integer is ignored
	}
	return r, !d.Failed
}

// Template decodes a description of a template; it returns false if the description is invalid.
func Template(raw json.RawMessage) (ensemble.Template, bool) {
	m, err := wire.Members(raw)
	if err != nil {
		return ensemble.Template{}, false
	}
	d := Object{Members: m}
	return ensemble.Template{
		URI: d.required("uriTemplate"), Name: d.Text("name"), Title: d.Text("title"), Description: d.Text("description"), MIME: d.Text("mimeType"),
		Metadata: Metadata(m, "uriTemplate", "name", "title", "description", "mimeType"),
	}, !d.Failed
}

// Prompt decodes a description of a prompt; it returns false if the description is invalid.
func Prompt(raw json.RawMessage) (ensemble.Prompt, bool) {
	m, err := wire.Members(raw)
	if err != nil {
		return ensemble.Prompt{}, false
	}
	d := Object{Members: m}
	p := ensemble.Prompt{
		Name: d.required("name"), Title: d.Text("title"), Description: d.Text("description"),
		Metadata: Metadata(m, "name", "title", "description", "arguments"),
	}
	var arguments []map[string]json.RawMessage
	d.into("arguments", &arguments)
	for _, a := range arguments {
		argument := Object{Members: a}
		p.Arguments = append(p.Arguments, ensemble.PromptArgument{
			Name: argument.Text("name"), Title: argument.Text("title"), Description: argument.Text("description"), Required: argument.bool("required"),
			Metadata: Metadata(a, "name", "title", "description", "required"),
		})
		d.Failed = d.Failed || argument.Failed
	}
	return p, !d.Failed
}
