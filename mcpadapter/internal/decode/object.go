// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Object decodes the members of a JSON object and remembers whether any was broken.
type Object struct {
	Members map[string]json.RawMessage
	Failed  bool
}

func (d *Object) into(name string, value any) {
	if raw, ok := d.Members[name]; ok && json.Unmarshal(raw, value) != nil {
		d.Failed = true
	}
}

// Text returns a member that is text; empty if it is missing.
func (d *Object) Text(name string) string {
	raw, ok := d.Members[name]
	if !ok {
		return ""
	}
	s, err := wire.String(raw)
	d.Failed = d.Failed || err != nil
	return s
}

func (d *Object) bool(name string) (b bool) {
	d.into(name, &b)
	return b
}

func (d *Object) required(name string) string {
	if _, ok := d.Members[name]; !ok {
		d.Failed = true
	}
	return d.Text(name)
}

// bytes decodes base64; a missing member is an error too.
func (d *Object) bytes(name string) []byte {
	data := []byte{}
	if raw, ok := d.Members[name]; !ok || json.Unmarshal(raw, &data) != nil {
		d.Failed = true
	}
	return data
}

// extra returns the members that are not known.
func (d *Object) extra(known ...string) canister.Extra {
	return canister.Extra{Metadata: Metadata(d.Members, known...)}
}

// Resource decodes an embedded resource. Members of the inner object go into the
// metadata under "mcp/resource/".
func (d *Object) Resource() canister.Content {
	inner, err := wire.Members(d.Members["resource"])
	if err != nil {
		d.Failed = true
		return nil
	}
	r := Object{Members: inner}
	content := canister.ResourceContent{URI: r.Text("uri"), MIME: r.Text("mimeType"), Text: r.Text("text")}
	if _, ok := inner["blob"]; ok {
		content.Blob = r.bytes("blob")
	}
	content.Metadata = Merge(Metadata(d.Members, "resource", "type"), MetadataUnder(wire.ResourcePrefix, inner, "uri", "mimeType", "text", "blob"))
	d.Failed = d.Failed || r.Failed
	return content
}

func (d *Object) link() canister.Content {
	content := canister.LinkContent{
		URI:         d.required("uri"),
		Name:        d.Text("name"),
		Title:       d.Text("title"),
		Description: d.Text("description"),
		MIME:        d.Text("mimeType"),
		Extra:       d.extra("uri", "name", "title", "description", "mimeType", "size", "type"),
	}
	d.into("size", &content.Size)
	return content
}
