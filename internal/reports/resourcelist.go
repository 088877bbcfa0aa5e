// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// ResourceList is the JSON output of consort resources.
type ResourceList struct {
	Resources []resourceJSON `json:"resources"`
	Templates []templateJSON `json:"templates"`
	Aside     []Aside        `json:"aside"`
	Away      []Away         `json:"away"`
}

type resourceJSON struct {
	URI         string          `json:"uri"`
	Ensemble    string          `json:"ensemble"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mime,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Metadata    canister.Fields `json:"metadata,omitempty"` // data without a field of its own, by name: mcp/icons, mcp/_meta
}

type templateJSON struct {
	URI         string          `json:"uri"`
	Ensemble    string          `json:"ensemble"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mime,omitempty"`
	Metadata    canister.Fields `json:"metadata,omitempty"`
}

// NewResourceList lists the resources of a roster, and the templates of resources.
func NewResourceList(all *ensemble.Resources) *ResourceList {
	list := &ResourceList{Resources: []resourceJSON{}, Templates: []templateJSON{}, Aside: asides(all.Aside), Away: aways(all.Away)}
	for _, r := range all.Resources {
		list.Resources = append(list.Resources, resourceJSON{r.URI, r.Ensemble, r.Name, r.Title, r.Description, r.MIME, r.Size, r.Metadata})
	}
	for _, t := range all.Templates {
		list.Templates = append(list.Templates, templateJSON{t.URI, t.Ensemble, t.Name, t.Title, t.Description, t.MIME, t.Metadata})
	}
	return list
}

// Text renders the list for people, grouped by ensemble.
func (l *ResourceList) Text(paint terminal.Palette, roster *ensemble.Roster) string {
	listed := listing{paint: paint}
	for _, e := range roster.Ensembles() {
		var rows [][]string
		row := func(ensemble, uri, about string) {
			if ensemble == e.Name() {
				rows = append(rows, []string{"  " + display.Line(uri), terminal.Fit(display.Line(about), 80)})
			}
		}
		for _, r := range l.Resources {
			row(r.Ensemble, r.URI, cmp.Or(r.Title, r.Description, r.Name))
		}
		for _, t := range l.Templates {
			row(t.Ensemble, t.URI, cmp.Or(t.Title, t.Description, t.Name))
		}
		listed.add(e.Name(), rows, l.Aside)
	}
	return listed.or("no resources\n")
}
