// SPDX-License-Identifier: Apache-2.0

package findcall

import (
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/ensemble/toolsearch"
	"github.com/consort-go/consort/internal/textcut"
)

// The tool that reads resources.
const (
	ReadName        = "read_resource"
	ReadDescription = "Read a resource by its URI."
)

// Resource is a resource, or a template of resources, that can be found.
type Resource struct {
	URI         string `json:"resource,omitempty"`
	Template    string `json:"resource_template,omitempty"`
	Server      string `json:"server"`
	Name        string `json:"-"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mime_type,omitempty"`
	ReadWith    string `json:"read_with"` // the tool that reads it
}

const (
	mostResources   = 3   // in a result
	resourceText    = 300 // bytes of a title or a description
	longestResource = 2048
)

// FindResources returns the resources that fit a query best, each a line of JSON; the text
// is empty if none fits.
func FindResources(query Query, all []Resource) string {
	entries := make([]toolsearch.Entry, len(all))
	for i, r := range all {
		entries[i] = toolsearch.Entry{Name: r.Name, Title: r.Title, Description: r.Description + "\n" + r.URI + r.Template, Server: r.Server}
	}
	var b strings.Builder
	for _, found := range toolsearch.New(entries).Search(query.Query, min(mostResources, query.max())) {
		r := all[found.Entry]
		if len(r.URI)+len(r.Template) > longestResource {
			continue // it could not be read by a shorter one
		}
		if r.Title == "" {
			r.Title = r.Name
		}
		r.Title, r.Description = textcut.Bytes(r.Title, resourceText), textcut.Bytes(r.Description, resourceText)
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(r) // texts alone
	}
	return b.String()
}
