// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/provider"
	"github.com/spf13/cobra"
)

// Models returns the names of the models of a configuration, which may be nil, and of one
// model of each provider.
func Models(cfg *config.Config) (names []string) {
	add := func(name, description string) {
		if !slices.ContainsFunc(names, func(have string) bool { return strings.HasPrefix(have+"\t", name+"\t") }) {
			names = append(names, cobra.CompletionWithDesc(name, description))
		}
	}
	if cfg != nil && cfg.Model != nil {
		add(cfg.Model.Name.Reveal(), "[model]")
		for _, m := range cfg.Model.Fallbacks {
			add(m.Name.Reveal(), "[[model.fallback]]")
		}
	}
	for _, p := range provider.All {
		add(p.Proposed, p.Name+"; the key is in "+p.Key)
	}
	return names
}

// Setting completes KEY=VALUE: a key, one part after the other, and then its value if it
// has only a few. The configuration, which may be nil, has the names of the servers.
func Setting(cfg *config.Config, typed string) (found []string, _ cobra.ShellCompDirective) {
	key, value, valued := strings.Cut(typed, "=")
	servers := map[string][]string{}
	if cfg != nil {
		servers["mcp"], servers["grpc"] = slices.Sorted(maps.Keys(cfg.MCP)), slices.Sorted(maps.Keys(cfg.GRPC))
	}
	for _, one := range config.Keys() {
		for _, path := range withNames(one.Path, key, servers) {
			switch {
			case strings.Contains(path, "[]"): // lists are set as a whole
			case valued && path == key:
				for _, word := range one.Values {
					if strings.HasPrefix(word, value) {
						found = append(found, key+"="+word)
					}
				}
			case !valued && strings.HasPrefix(path, key):
				found = append(found, nextPart(path, key, one.Kind))
			}
		}
	}
	if valued {
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	slices.Sort(found)
	return slices.Compact(found), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// nextPart returns path up to the end of the part that is being typed: with a dot if others
// follow, and otherwise with an equals sign and its kind.
func nextPart(path, typed, kind string) string {
	if part := strings.IndexByte(path[len(typed):], '.'); part >= 0 {
		return path[:len(typed)+part+1]
	}
	if strings.HasPrefix(kind, "a table") || kind == "a free table" {
		return path + "."
	}
	return cobra.CompletionWithDesc(path+"=", kind)
}

// withNames returns a path with names instead of NAME: the typed name, or else the names of
// the configured servers.
func withNames(path, typed string, servers map[string][]string) (paths []string) {
	before, after, found := strings.Cut(path, "NAME")
	if !found {
		return []string{path}
	}
	if rest, ok := strings.CutPrefix(typed, before); ok && strings.Contains(rest, ".") {
		name, _, _ := strings.Cut(rest, ".")
		return []string{before + name + after}
	}
	for _, name := range servers[strings.TrimSuffix(before, ".")] {
		paths = append(paths, before+name+after)
	}
	return paths
}
