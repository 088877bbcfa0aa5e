// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path/filepath"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/config/internal/plaintext"
)

// imports adds the servers of the imported files.
func (c *Config) imports(r *reader, root *document.Node, options *Options) {
	member := root.Member("import")
	if member == nil {
		return
	}
	elements, _ := member.Value.(document.List)
	for _, element := range elements {
		written, ok := element.Value.(string)
		if !ok || written == "" {
			continue // already reported
		}
		path := written
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.source.Of(element).Folder(), path)
		}
		data, err := options.read(path)
		if err != nil {
			r.wrong(element, "%s", fileFault(err)).Err = err
			continue
		}
		src := &document.Source{Name: path, Data: data}
		if tree := r.problems.tree(document.JSON, src); tree != nil {
			c.importTree(r, src, tree)
		}
	}
	sortProblems(c.Ignored)
}

// importTree adds the servers of the file src of another MCP host; r has read the
// configuration itself.
func (c *Config) importTree(r *reader, src *document.Source, tree *document.Node) {
	ignored := &problems{}
	c.importFile(&reader{source: src, problems: r.problems, Expander: expand.Expander{Lookup: r.Lookup, Foreign: true}, ignored: ignored}, tree)
	c.Ignored = append(c.Ignored, ignored.list...)
}

// importFile adds the servers under mcpServers, or under servers as VS Code calls them. The
// rest of the file belongs to the other host.
func (c *Config) importFile(r *reader, root *document.Node) {
	servers := cmp.Or(root.Member("mcpServers"), root.Member("servers"))
	if servers == nil {
		r.missing(root, "mcpServers", `missing: expected an object of servers by name, as in {"mcpServers": {"NAME": {"command": "npx"}}}`)
		return
	}
	var found map[string]*hostServer
	byName(&found, foreignServer, plaintext.ServerName).read(r, servers)
	t, ok := servers.Value.(*document.Table)
	if !ok {
		return
	}
	for _, member := range t.Members {
		if earlier := c.Supervised()[member.Key]; earlier != nil {
			r.wrongKey(member, "another server already has this name, from %s", earlier.Origin)
			continue
		}
		if c.MCP == nil {
			c.MCP = map[string]*Server{}
		}
		c.MCP[member.Key] = found[member.Key].server()
	}
}

// hostServer is a server in the format of other MCP hosts.
type hostServer struct {
	Server
	Exec Value
	Args []Value
}

// hostTransports are the names of transports in files of other hosts.
var hostTransports = []word[Transport]{
	{"stdio", Stdio}, {"http", HTTP}, {"sse", SSE},
	{"streamable-http", HTTP}, {"streamable_http", HTTP}, {"streamableHttp", HTTP},
}

func foreignServer(s **hostServer) value {
	*s = new(hostServer)
	return tableOf((*s).fields(), (*s).check).lenientIf("disabled", true)
}

func (s *hostServer) fields() []field {
	kind := wordFor(&s.Transport, hostTransports...)
	return []field{
		{"type", kind},
		{"transport", kind},
		{"command", expanded(&s.Exec)},
		{"args", each(&s.Args, argument)},
		{"env", byName(&s.Environment, environmentValue, plaintext.VariableName)},
		{"cwd", directory(&s.Directory)},
		{"url", address(&s.URL)},
		{"serverUrl", address(&s.URL)},
		{"httpUrl", address(&s.URL)},
		{"headers", byName(&s.Headers, headerValue, plaintext.HeaderName)},
		{"disabled", boolean(&s.Disabled)},
	}
}

func (s *hostServer) check(r *reader, n *document.Node) {
	s.originate(r, n)
	keys := serverKeys{
		transport: "type",
		stdio:     []string{"command", "args", "env", "cwd"},
		http:      []string{"url", "headers"},
		command:   `"command": "npx"`,
		url:       `"url": "http://localhost:8080/mcp"`,
	}
	if n.Member("transport") != nil {
		keys.transport = "transport"
	}
	for _, other := range []string{"serverUrl", "httpUrl"} { // of Windsurf and of Gemini CLI
		if n.Member(other) != nil && n.Member("url") == nil {
			keys.http[0] = other
		}
	}
	s.reach(r, n, keys)
}

// server converts s to a Server.
func (s *hostServer) server() *Server {
	server := s.Server
	if server.Transport == Stdio {
		server.Command = append([]Value{s.Exec}, s.Args...)
	}
	return &server
}
