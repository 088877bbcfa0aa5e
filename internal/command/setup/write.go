// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/provider"
	"github.com/consort-go/consort/internal/tomltext"
)

// answers are the answers to the questions.
type answers struct {
	Model       string
	BaseURL     string // empty for the provider that the name implies
	KeyVariable string // the variable with the key; empty for none, or the provider's own
	Servers     []*server
}

// Text returns the configuration. It contains the secrets of servers that cannot be
// imported by the path of their file.
func (a *answers) Text() string {
	var b strings.Builder
	b.WriteString(`# The configuration of consort. To check it:    consort check
#                               To talk:        consort chat
# docs/configuration.md describes every key.

[model]
`)
	fmt.Fprintf(&b, "name = %s\n", tomltext.Quote(a.Model))
	if a.BaseURL != "" {
		fmt.Fprintf(&b, "base_url = %s\n", tomltext.Quote(a.BaseURL))
	} else {
		b.WriteString("# base_url = \"http://localhost:11434/v1\"   # another server, such as Ollama\n")
	}
	switch own := providerKey(a.Model, a.BaseURL); {
	case a.KeyVariable == "" && own == "":
		b.WriteString("# api_key = \"env:NAME\"   # the variable with the key, if the server needs one\n")
	case a.KeyVariable == "" || a.KeyVariable == own:
		fmt.Fprintf(&b, "# The key is in the variable %s.\n", own)
	default:
		fmt.Fprintf(&b, "api_key = %s\n", tomltext.Quote("env:"+a.KeyVariable))
	}
	b.WriteString(`
[conversation]
# instructions = "Answer briefly."
# time = "5m"                  # how long a turn may take

# Without [history], consort keeps conversations in a file of the user.
# [history]
# path = "history.db"

# chat and run ask before each call of a tool, unless the tool says that it changes nothing.
# default decides about all tools (allow, deny or ask), and a rule about some of them.
# [approval]
# default = "ask"              # also for tools that say that they change nothing
# [[approval.rules]]
# action = "allow"
# ensembles = ["files"]        # the server [mcp.files]
# tools = ["write_*"]
`)
	a.writeServers(&b)
	return b.String()
}

// writeServers writes the imports and the tables of the servers.
func (a *answers) writeServers(b *strings.Builder) {
	imports, tables := a.split()
	if len(a.Servers) == 0 {
		b.WriteString(`
# An MCP server is a table. Its tools are named files__… for the model.
# [mcp.files]
# command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
# allow = ["read_*", "list_*"]
`)
	}
	for _, s := range tables {
		fmt.Fprintf(b, "\n# From %s.\n", comment(strings.Join(s.From, ", ")))
		if len(s.Secrets) > 0 {
			fmt.Fprintf(b, "# A secret is in: %s. A variable is safer, as in \"env:NAME\".\n", comment(strings.Join(s.Secrets, ", ")))
		}
		b.WriteString(s.block())
	}
	if len(imports) == 0 {
		return
	}
	text := b.String()
	b.Reset()
	head, rest, _ := strings.Cut(text, "\n\n")
	var paths []string
	for _, path := range imports {
		paths = append(paths, tomltext.Quote(path))
	}
	fmt.Fprintf(b, "%s\n\n# All servers of these files, which stay where they are: they contain secrets.\nimport = [%s]\n\n%s", head, strings.Join(paths, ", "), rest)
}

// split returns the files that are imported by path, and the servers that are written as
// tables. A file is imported if one of its servers has a secret and all of them are wanted,
// as they are.
func (a *answers) split() (imports []string, tables []*server) {
	wanted, secret := map[*origin]int{}, map[*origin]bool{}
	for _, s := range a.Servers {
		wanted[s.origin]++
		secret[s.origin] = secret[s.origin] || len(s.Secrets) > 0
	}
	for _, s := range a.Servers {
		o := s.origin
		if !o.whole || !secret[o] || wanted[o] < o.servers {
			tables = append(tables, s)
			continue
		}
		if !slices.Contains(imports, o.file.path) {
			imports = append(imports, o.file.path)
		}
	}
	return imports, tables
}

// Exposed returns the servers whose secrets are in the text.
func (a *answers) Exposed() []*server {
	_, tables := a.split()
	return slices.DeleteFunc(tables, func(s *server) bool { return len(s.Secrets) == 0 })
}

// Unset returns the variables that the configuration needs and lookup does not have.
func (a *answers) Unset(lookup func(string) (string, bool)) []string {
	name := a.KeyVariable
	if name == "" {
		name = providerKey(a.Model, a.BaseURL)
	}
	if value, _ := lookup(name); name == "" || value != "" {
		return nil
	}
	return []string{name}
}

// providerKey returns the variable with the key of a provider's own model; empty for other
// servers. It follows [model] in docs/configuration.md.
func providerKey(model, baseURL string) string {
	if baseURL != "" {
		return ""
	}
	return provider.Model{Name: model}.KeyVariable()
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// key returns a key of TOML.
func key(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return tomltext.Quote(name)
}

// comment returns text without line breaks.
func comment(text string) string { return strings.Join(strings.Fields(text), " ") }

// fullPath returns an absolute path.
func fullPath(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
