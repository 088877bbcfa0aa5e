// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/http"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
)

// server is one [mcp.NAME] table.
func server(s **Server) grammar.Kind {
	*s = new(Server)
	v := grammar.Table((*s).fields(), (*s).check)
	return v.LenientIf("enabled", false)
}

func (s *Server) fields() []grammar.Field {
	return append(s.Supervision.fields(), []grammar.Field{
		grammar.Key("transport", grammar.Choice(&s.Transport, transportNames()...)),
		grammar.Key("command", commandLine(&s.Command)),
		grammar.Key("environment", grammar.ByName(&s.Environment, grammar.VariableValue, plaintext.VariableName)),
		grammar.Key("directory", grammar.Path(&s.Directory)),
		grammar.Key("limits", grammar.Table([]grammar.Field{
			grammar.Key("memory", grammar.Size(&s.Limits.Memory)),
			grammar.Key("open_files", grammar.Integer(&s.Limits.OpenFiles, 1)),
			grammar.Key("cpu", grammar.Duration(&s.Limits.CPU)),
		}, nil)),
		grammar.Key("url", grammar.Address(&s.URL)),
		grammar.Key("headers", grammar.ByName(&s.Headers, grammar.HeaderValue, plaintext.HeaderName)),
		grammar.Key("oauth", grammar.Optional(&s.OAuth, func(a *OAuth) grammar.Kind { return grammar.Table(a.fields(), a.check) })),
		grammar.Key("sampling", grammar.Boolean(&s.Sampling)),
		grammar.Key("roots", grammar.Each(&s.Roots, root)),
		grammar.Key("client_roots", grammar.Boolean(&s.ClientRoots)),
		grammar.Key("trusted", grammar.Table([]grammar.Field{
			grammar.Key("arguments", grammar.ByName(&s.Fill, grammar.Text[string], plaintext.ArgumentName)),
			grammar.Key("headers", grammar.ByName(&s.TrustedHeaders, grammar.Text[string], plaintext.HeaderName)),
		}, nil)),
		grammar.Key("protocol", grammar.ProtocolVersion(&s.Protocol)),
	}...)
}

// check validates the table as a whole.
func (s *Server) check(r *grammar.Reader, n *document.Node) {
	s.reach(r, n, serverKeys{
		transport: "transport",
		stdio:     []string{"command", "environment", "directory", "limits"},
		http:      []string{"url", "headers", "oauth"},
		command:   `command = ["npx", "-y", "@modelcontextprotocol/server-everything"]`,
		url:       `url = "http://localhost:8080/mcp"`,
	})
	s.passing(r, n)
	s.authorized(r, n)
	s.Supervision.check(r, n)
}

// serverKeys holds the names of the keys that define how a server is reached, the main
// key of each way first, and examples of the two main keys.
type serverKeys struct {
	transport    string
	stdio, http  []string
	command, url string
}

// reach checks that n defines one way to reach its server, and infers the transport if n
// does not name it.
func (s *Server) reach(r *grammar.Reader, n *document.Node, keys serverKeys) {
	command, url := n.Member(keys.stdio[0]), n.Member(keys.http[0])
	named := n.Member(keys.transport)
	switch {
	case command != nil && url != nil:
		later := command
		if url.KeyAt > command.KeyAt {
			later = url
		}
		r.WrongKey(later, "a server has either %s or %s, not both: remove one", keys.stdio[0], keys.http[0])
		return
	case command == nil && url == nil && (named == nil || s.Transport == ""):
		r.Missing(n, keys.stdio[0], "missing: expected %s for a server that is started, or %s for one that is running", keys.stdio[0], keys.http[0])
		return
	case named != nil && s.Transport == "": // already reported
		return
	case s.Transport == "" && command != nil:
		s.Transport = Stdio
	case s.Transport == "":
		s.Transport = HTTP
	}
	other := keys.stdio
	if s.Transport == Stdio {
		other = keys.http
		s.hasCommand(r, n, command, keys)
	} else if url == nil {
		r.Missing(n, keys.http[0], "missing: expected the address of the server, such as %s", keys.url)
	}
	for _, key := range other {
		if stray := n.Member(key); stray != nil {
			r.WrongKey(stray, "not for a server with %s = %q: remove it", keys.transport, s.Transport)
		}
	}
}

// hasCommand reports a missing program.
func (s *Server) hasCommand(r *grammar.Reader, n, command *document.Node, keys serverKeys) {
	if command == nil {
		r.Missing(n, keys.stdio[0], "missing: expected the program to start, such as %s", keys.command)
		return
	}
	arguments, ok := command.Value.(document.List)
	switch {
	case ok && len(arguments) == 0:
		r.Wrong(command, "expected the program to start, not an empty list: write it, such as %s", keys.command)
	case len(s.Command) > 0 && s.Command[0] != (values.Value{}) && s.Command[0].Reveal() == "" && !r.Lenient:
		r.Wrong(command, "expected the program to start as the first word, not an empty string")
	}
}

// commandLine is a program with its arguments, as a list. Other hosts and shells take one
// string, so a string gets its own hint.
func commandLine(to *[]values.Value) grammar.Kind {
	v := grammar.Each(to, grammar.Argument)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		if _, ok := n.Value.(string); ok {
			r.Wrong(n, `expected a list of strings, found a string: write each word as a string of its own, such as command = ["python3", "server.py"]`)
			return
		}
		v.Read(r, n)
	}}
}

// passing checks a server's trusted values against the rest of its table.
func (s *Server) passing(r *grammar.Reader, n *document.Node) {
	all := n.Member("trusted")
	if all == nil || all.Member("headers") == nil {
		return
	}
	headers := all.Member("headers")
	if s.Transport == Stdio {
		r.WrongKey(headers, "not for a server with transport = %q; its tools receive a trusted value through arguments", Stdio)
	}
	fixed := map[string]bool{}
	for name := range s.Headers {
		fixed[http.CanonicalHeaderKey(name)] = true
	}
	for _, member := range headers.Members() {
		if fixed[http.CanonicalHeaderKey(member.Key)] {
			r.WrongKey(member, "this header is set in headers already")
		}
	}
}
