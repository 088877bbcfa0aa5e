// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/findcall"
)

// Ensemble makes the ensemble of find_tools and call_tool, for the tools of the other
// ensembles. If one of them is of package resourcetools, find_tools finds resources too, and
// says which tool reads them. It belongs in the same roster as they do. The errors are the same as from
// [ensemble.NewRoster]. The caller must still close the other ensembles.
func Ensemble(name string, others ...*ensemble.Ensemble) (*ensemble.Ensemble, error) {
	roster, err := ensemble.NewRoster(others...)
	if err != nil {
		return nil, err
	}
	find, err := findcall.NewFind(ensemble.NameFor(name, findcall.CallName), namesOf(others),
		func(ctx context.Context, asked findcall.Query) (string, error) { return findTools(ctx, roster, asked) })
	if err != nil {
		return nil, err
	}
	return ensemble.Local(name, find, findcall.Call{Find: ensemble.NameFor(name, findcall.FindName)}), nil
}

func namesOf(ensembles []*ensemble.Ensemble) []string {
	var names []string
	for _, e := range ensembles {
		names = append(names, e.Name())
	}
	return names
}

func findTools(ctx context.Context, roster *ensemble.Roster, asked findcall.Query) (string, error) {
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		return "", err // the call or the program has ended
	}
	text, err := offerOf(catalog).Find(asked)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(text)
	if reader := readerOf(catalog); reader != "" {
		resources, err := roster.Resources(ctx)
		if err != nil {
			return "", err // the call or the program has ended
		}
		b.WriteString(findcall.FindItems(asked, findcall.ItemsOf(resources, reader)))
	}
	for _, away := range catalog.Away() {
		fmt.Fprintf(&b, "The tools of %q are missing: it cannot be reached.\n", away.Ensemble)
	}
	return b.String(), nil
}

// readerOf returns the name of the tool of package resourcetools that reads resources, or ""
// if the model has none. It follows the servers whose resources it reads.
func readerOf(catalog *ensemble.Catalog) string {
	for _, t := range slices.Backward(catalog.Tools()) {
		if d := t.Definition(); d.Name == findcall.ReadName && d.Description == findcall.ReadDescription {
			return t.Name()
		}
	}
	return ""
}

// offerOf returns the tools of a catalog that are for models. It makes the index once for each
// catalog.
func offerOf(catalog *ensemble.Catalog) *findcall.Offer {
	type key struct{}
	return catalog.Derive(key{}, func() any {
		var tools []findcall.Tool
		for _, t := range catalog.Tools() {
			if definition := t.Definition(); definition.IsForModels() {
				tools = append(tools, findcall.Tool{Name: t.Name(), Server: t.Ensemble().Name(), Definition: definition})
			}
		}
		return findcall.NewOffer(tools)
	}).(*findcall.Offer)
}
