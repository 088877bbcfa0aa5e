// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path/filepath"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/config/internal/plaintext"
)

// imports adds the servers of the imported files, and to ignored their other keys.
func (c *Config) imports(r *grammar.Reader, root *document.Node, options *Options, ignored *grammar.Faults) {
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
			path = filepath.Join(r.Source.Of(element).Folder(), path)
		}
		data, err := options.read(path)
		if err != nil {
			r.Wrong(element, "%s", fileFault(err)).Err = err
			continue
		}
		src := &document.Source{Name: path, Data: data}
		if tree := r.Faults.Tree(document.JSON, src); tree != nil {
			c.importTree(r, src, tree, ignored)
		}
	}
}

// importTree adds the servers of the file src of another MCP host; r has read the
// configuration itself.
func (c *Config) importTree(r *grammar.Reader, src *document.Source, tree *document.Node, ignored *grammar.Faults) {
	c.importFile(&grammar.Reader{Source: src, Faults: r.Faults, Expander: expand.Expander{Lookup: r.Lookup, Foreign: true}, Ignored: ignored}, tree)
}

// importFile adds the servers under mcpServers, or under servers as VS Code calls them. The
// rest of the file belongs to the other host.
func (c *Config) importFile(r *grammar.Reader, root *document.Node) {
	servers := cmp.Or(root.Member("mcpServers"), root.Member("servers"))
	if servers == nil {
		r.Missing(root, "mcpServers", `missing: expected an object of servers by name, as in {"mcpServers": {"NAME": {"command": "npx"}}}`)
		return
	}
	var found map[string]*hostServer
	grammar.ByName(&found, foreignServer, plaintext.ServerName).Read(r, servers)
	t, ok := servers.Value.(*document.Table)
	if !ok {
		return
	}
	for _, member := range t.Members {
		if earlier := c.Supervised()[member.Key]; earlier != nil {
			r.WrongKey(member, "another server already has this name, from %s", earlier.Origin)
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
	Exec values.Value
	Args []values.Value
}

// hostTransports are the names of transports in files of other hosts.
var hostTransports = []grammar.Word[Transport]{
	grammar.Means("stdio", Stdio), grammar.Means("http", HTTP), grammar.Means("sse", SSE),
	grammar.Means("streamable-http", HTTP), grammar.Means("streamable_http", HTTP), grammar.Means("streamableHttp", HTTP),
}

func foreignServer(s **hostServer) grammar.Kind {
	*s = new(hostServer)
	return grammar.Table((*s).fields(), (*s).check).LenientIf("disabled", true)
}

func (s *hostServer) fields() []grammar.Field {
	kind := grammar.WordFor(&s.Transport, hostTransports...)
	return []grammar.Field{
		grammar.Key("type", kind),
		grammar.Key("transport", kind),
		grammar.Key("command", grammar.Expanded(&s.Exec)),
		grammar.Key("args", grammar.Each(&s.Args, grammar.Argument)),
		grammar.Key("env", grammar.ByName(&s.Environment, grammar.VariableValue, plaintext.VariableName)),
		grammar.Key("cwd", grammar.Path(&s.Directory)),
		grammar.Key("url", grammar.Address(&s.URL)),
		grammar.Key("serverUrl", grammar.Address(&s.URL)),
		grammar.Key("httpUrl", grammar.Address(&s.URL)),
		grammar.Key("headers", grammar.ByName(&s.Headers, grammar.HeaderValue, plaintext.HeaderName)),
		grammar.Key("disabled", grammar.Boolean(&s.Disabled)),
	}
}

func (s *hostServer) check(r *grammar.Reader, n *document.Node) {
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
	var first *document.Node
	text := func(n *document.Node) string { s, _ := n.Value.(string); return s } // another kind is wrong anyway
	for _, name := range []string{"url", "serverUrl", "httpUrl"} {
		if member := n.Member(name); first == nil {
			first = member
		} else if member != nil && text(member) != text(first) {
			r.WrongKey(member, "it differs from %s, which means the same: remove one", first.Key)
		}
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
		server.Command = append([]values.Value{s.Exec}, s.Args...)
	}
	return &server
}
