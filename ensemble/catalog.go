// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/suggest"
)

// Away is an ensemble that could not be reached, with the error.
type Away struct {
	Ensemble string
	Err      error
}

// Catalog contains the tools that a roster offered at one moment. It never changes.
// Calls use the current connections.
type Catalog struct {
	members *members // and their offers and errors that it was made from
	offers  []*offer
	errs    []error

	tools  []*Tool // sorted by name
	byName map[string]*Tool
	aside  []Aside
	away   []Away

	derived derived
}

// newCatalog makes a catalog from the offers of ensembles, and from the errors of the
// ensembles without an offer.
func newCatalog(m *members, offers []*offer, errs []error) *Catalog {
	c := &Catalog{members: m, offers: offers, errs: errs, byName: make(map[string]*Tool)}
	var tools []*Tool
	for i, e := range m.ensembles {
		if errs[i] != nil {
			c.away = append(c.away, Away{e.name, errs[i]})
			continue
		}
		tools = append(tools, offers[i].tools...)
		c.aside = append(c.aside, offers[i].aside...)
	}
	slices.SortFunc(tools, compareTools)
	for _, t := range tools {
		if other, ok := c.byName[t.name]; ok {
			c.aside = append(c.aside, Aside{t.ensemble.name, t.definition.Name,
				fmt.Sprintf("the model would see it under the same name as %q of %q", other.definition.Name, other.ensemble.name)})
			continue
		}
		c.byName[t.name] = t
		c.tools = append(c.tools, t)
	}
	slices.SortStableFunc(c.aside, compareAside)
	return c
}

// isOf reports whether a new catalog of these offers and errors would be the same.
func (c *Catalog) isOf(m *members, offers []*offer, errs []error) bool {
	return c.members == m && slices.Equal(c.offers, offers) && slices.EqualFunc(c.errs, errs, func(a, b error) bool {
		return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
	})
}

// offersOf returns copies of the offers and the errors of the members of a roster. A
// member that the catalog does not have is away.
func (c *Catalog) offersOf(m *members) (offers []*offer, errs []error) {
	if c.members == m {
		return slices.Clone(c.offers), slices.Clone(c.errs)
	}
	for _, e := range m.ensembles {
		if i := slices.Index(c.members.ensembles, e); i >= 0 {
			offers, errs = append(offers, c.offers[i]), append(errs, c.errs[i])
			continue
		}
		offers, errs = append(offers, nil), append(errs, fmt.Errorf("ensemble %q: not connected yet", e.name))
	}
	return offers, errs
}

// Tools returns the tools, sorted by [Tool.Name]. The caller may modify the slice.
func (c *Catalog) Tools() []*Tool { return slices.Clone(c.tools) }

// Find returns the tool with this name for the model.
func (c *Catalog) Find(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Of returns the tools of the ensemble with this name, sorted by [Tool.Name].
func (c *Catalog) Of(ensemble string) []*Tool {
	return c.those(func(t *Tool) bool { return t.ensemble.name == ensemble })
}

// InCategory returns the tools of a category, sorted by [Tool.Name]; see
// [invoker.Definition.Category].
func (c *Catalog) InCategory(category string) []*Tool {
	return c.those(func(t *Tool) bool { return t.definition.Category() == category })
}

func (c *Catalog) those(match func(*Tool) bool) []*Tool {
	return slices.DeleteFunc(c.Tools(), func(t *Tool) bool { return !match(t) })
}

// Aside returns the tools that are not offered, with reasons, sorted by ensemble and
// tool.
func (c *Catalog) Aside() []Aside { return slices.Clone(c.aside) }

// Away returns the ensembles that could not be reached, in the order of the roster.
// Their tools are missing.
func (c *Catalog) Away() []Away { return slices.Clone(c.away) }

// derived caches values that were derived from a catalog.
type derived struct {
	mu     sync.Mutex
	values map[any]any
}

// maxDerived is the maximum number of cached values of a catalog.
const maxDerived = 64

// Derive returns the cached value for the key; without one, it calls derive and caches
// the result, so that the conversations that share a catalog also share the values derived
// from it. Keys are compared like the keys of a map; the 65th replaces all others. Derive
// may be called concurrently, also with the same key. One derive of a catalog runs at a
// time, and must not call Derive of the same catalog.
func (c *Catalog) Derive(key any, derive func() any) any {
	c.derived.mu.Lock()
	defer c.derived.mu.Unlock()
	value, ok := c.derived.values[key]
	if !ok {
		value = derive()
		if len(c.derived.values) == maxDerived || c.derived.values == nil {
			c.derived.values = make(map[any]any)
		}
		c.derived.values[key] = value
	}
	return value
}

// Nearest returns the names of up to n tools that a model may have meant by a name that
// [Catalog.Find] does not know, the nearest first. It also finds a tool whose ensemble
// was left out or misspelled. Names without similarity are not returned.
func (c *Catalog) Nearest(name string, n int) []string {
	return suggest.Names(name, c.tools, n, func(t *Tool) (string, string) { return t.name, t.definition.Name })
}
