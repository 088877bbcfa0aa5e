// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/spf13/cobra"
)

// Ensembles returns the names of the ensembles of a roster.
func Ensembles(roster *ensemble.Roster) (names []string) {
	for _, e := range roster.Ensembles() {
		names = append(names, e.Name())
	}
	return names
}

// Tools returns the tools of an ensemble, under their own names.
func Tools(ctx context.Context, roster *ensemble.Roster, name string) (names []string, err error) {
	e, ok := roster.Ensemble(name)
	if !ok {
		return nil, nil
	}
	tools, err := e.Tools(ctx)
	for _, tool := range tools {
		names = append(names, cobra.CompletionWithDesc(tool.Definition().Name, firstLine(tool.Definition().Description)))
	}
	return names, err
}

// Prompts returns the names of the prompts of all servers.
func Prompts(ctx context.Context, roster *ensemble.Roster) (names []string, err error) {
	all, err := roster.Prompts(ctx)
	if err != nil {
		return nil, err
	}
	for _, prompt := range all.Prompts {
		names = append(names, cobra.CompletionWithDesc(prompt.FullName(), firstLine(prompt.Description)))
	}
	return names, nil
}

// Resources returns the URIs of the resources of all servers.
func Resources(ctx context.Context, roster *ensemble.Roster) (uris []string, err error) {
	all, err := roster.Resources(ctx)
	if err != nil {
		return nil, err
	}
	for _, resource := range all.Resources {
		uris = append(uris, resource.URI)
	}
	return uris, nil
}

// ApprovalRules returns rules of --approve: the general ones, and one for the tools of each
// server of the configuration, which is nil without one. It starts no server.
func ApprovalRules(cfg *config.Config) []string {
	rules := []string{"all\trun each call", "reads\tonly those that change nothing"}
	if cfg == nil {
		return rules
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Supervised())) {
		rules = append(rules, name+"__*\tthe tools of "+name)
	}
	return rules
}

// firstLine returns the first line of a text that a server wrote, without control
// characters.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return display.Line(line)
}
