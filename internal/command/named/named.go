// SPDX-License-Identifier: Apache-2.0

// Package named finds the tools, prompts and resources of servers that a name stands for.
package named

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/uritemplate"
)

// Items returns the items of a roster with a name, or the URI, in the order of the servers.
func Items(ctx context.Context, roster *ensemble.Roster, name string, converse bool) (items []ensemble.Item, err error) {
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if tool, ok := catalog.Find(name); ok {
		items = append(items, ensemble.Item{Kind: ensemble.ToolItem, Ensemble: tool.Ensemble().Name(), Name: tool.Definition().Name, Hints: tool.TrustedHints()})
	}
	if converse && name == "converse" {
		items = append(items, ensemble.Item{Kind: ensemble.ToolItem, Name: name})
	}
	prompts, err := roster.Prompts(ctx)
	if err != nil {
		return nil, err
	}
	for _, prompt := range prompts.Prompts {
		if prompt.FullName() == name {
			items = append(items, ensemble.Item{Kind: ensemble.PromptItem, Ensemble: prompt.Ensemble, Name: prompt.Name})
		}
	}
	resources, err := roster.Resources(ctx)
	if err != nil {
		return nil, err
	}
	for _, resource := range resources.Resources {
		if resource.URI == name {
			items = append(items, ensemble.Item{Kind: ensemble.ResourceItem, Ensemble: resource.Ensemble, Name: name})
		}
	}
	for _, template := range resources.Templates {
		if _, ok := uritemplate.Match(template.URI, name); len(items) == 0 && (ok || template.URI == name) {
			items = append(items, ensemble.Item{Kind: ensemble.ResourceItem, Ensemble: template.Ensemble, Name: name})
		}
	}
	if len(items) == 0 {
		kind := "tool or prompt"
		if strings.Contains(name, ":") {
			kind = "resource"
		}
		return nil, fmt.Errorf("no server has the %s %q: see consort tools, consort prompts and consort resources", kind, name)
	}
	return items, nil
}
