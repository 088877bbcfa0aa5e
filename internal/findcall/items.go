// SPDX-License-Identifier: Apache-2.0

package findcall

import (
	"github.com/consort-go/consort/internal/jsontext"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/toolsearch"
)

// The tool that reads resources.
const (
	ReadName        = "read_resource"
	ReadDescription = "Read a resource by its URI."
)

// Item is a resource, a template of resources, or a prompt, that can be found.
type Item struct {
	URI         string   `json:"resource,omitempty"`
	Template    string   `json:"resource_template,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
	Server      string   `json:"server"`
	Name        string   `json:"-"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	MIME        string   `json:"mime_type,omitempty"`
	Arguments   []string `json:"arguments,omitempty"` // the names of a prompt's arguments
	ReadWith    string   `json:"read_with,omitempty"` // the tool or the method that reads a resource
	GetWith     string   `json:"get_with,omitempty"`  // the method that gets a prompt
}

const (
	mostItems   = 3   // in a result
	itemText    = 300 // bytes of a title or a description
	longestName = 2048
)

// ItemsOf returns resources and templates as items, with what reads them.
func ItemsOf(all *ensemble.Resources, readWith string) (items []Item) {
	for _, r := range all.Resources {
		items = append(items, Item{
			URI: r.URI, Server: r.Ensemble, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME, ReadWith: readWith,
		})
	}
	for _, t := range all.Templates {
		items = append(items, Item{
			Template: t.URI, Server: t.Ensemble, Name: t.Name, Title: t.Title, Description: t.Description, MIME: t.MIME, ReadWith: readWith,
		})
	}
	return items
}

// PromptItem returns a prompt as an item, under the name that the caller uses.
func PromptItem(name string, p ensemble.Prompt, getWith string) Item {
	item := Item{Prompt: name, Server: p.Ensemble, Name: p.Name, Title: p.Title, Description: p.Description, GetWith: getWith}
	for _, a := range p.Arguments {
		item.Arguments = append(item.Arguments, a.Name)
	}
	return item
}

// FindItems returns the items that fit a query best, each a line of JSON; the text is empty
// if none fits.
func FindItems(query Query, all []Item) string {
	var b strings.Builder
	for _, item := range SearchItems(query.Query, min(mostItems, query.max()), all) {
		line, _ := jsontext.Encode(item) // texts alone
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// SearchItems returns the items that fit a query best, at most n, with shortened texts.
func SearchItems(query string, n int, all []Item) (found []Item) {
	entries := make([]toolsearch.Entry, len(all))
	for i, item := range all {
		described := item.Description + "\n" + item.URI + item.Template
		entries[i] = toolsearch.Entry{Name: item.Name, Title: item.Title, Description: described, Server: item.Server}
	}
	for _, one := range toolsearch.New(entries).Search(query, n) {
		item := all[one.Entry]
		if len(item.URI)+len(item.Template)+len(item.Prompt) > longestName {
			continue // it could not be named by a shorter one
		}
		if item.Title == "" && item.Name != item.Prompt {
			item.Title = item.Name
		}
		item.Title, item.Description = textcut.Bytes(item.Title, itemText), textcut.Bytes(item.Description, itemText)
		found = append(found, item)
	}
	return found
}
