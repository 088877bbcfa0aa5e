// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
)

// server is one [mcp.NAME] table.
func server(s **Server) value {
	*s = new(Server)
	v := tableOf((*s).fields(), (*s).check)
	return v.lenientIf("enabled", false)
}

func (s *Server) fields() []field {
	return append(s.Supervision.fields(), []field{
		{"transport", choice(&s.Transport, transportNames()...)},
		{"command", commandLine(&s.Command)},
		{"environment", byName(&s.Environment, environmentValue, plaintext.VariableName)},
		{"directory", directory(&s.Directory)},
		{"limits", tableOf([]field{
			{"memory", size(&s.Limits.Memory)},
			{"open_files", integer(&s.Limits.OpenFiles, 1)},
			{"cpu", duration(&s.Limits.CPU)},
		}, nil)},
		{"url", address(&s.URL)},
		{"headers", byName(&s.Headers, headerValue, plaintext.HeaderName)},
		{"oauth", optional(&s.OAuth, func(a *OAuth) value { return tableOf(a.fields(), a.check) })},
		{"sampling", boolean(&s.Sampling)},
		{"roots", each(&s.Roots, root)},
		{"client_roots", boolean(&s.ClientRoots)},
		{"trusted", tableOf([]field{
			{"arguments", byName(&s.Fill, text[string], plaintext.ArgumentName)},
			{"headers", byName(&s.TrustedHeaders, text[string], plaintext.HeaderName)},
		}, nil)},
		{"protocol", protocolVersion(&s.Protocol)},
	}...)
}

// check validates the table as a whole.
func (s *Server) check(r *reader, n *document.Node) {
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
func (s *Server) reach(r *reader, n *document.Node, keys serverKeys) {
	command, url := n.Member(keys.stdio[0]), n.Member(keys.http[0])
	named := n.Member(keys.transport)
	switch {
	case command != nil && url != nil:
		later := command
		if url.KeyAt > command.KeyAt {
			later = url
		}
		r.wrongKey(later, "a server has either %s or %s, not both: remove one", keys.stdio[0], keys.http[0])
		return
	case command == nil && url == nil && (named == nil || s.Transport == ""):
		r.missing(n, keys.stdio[0], "missing: expected %s for a server that is started, or %s for one that is running", keys.stdio[0], keys.http[0])
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
		r.missing(n, keys.http[0], "missing: expected the address of the server, such as %s", keys.url)
	}
	for _, key := range other {
		if stray := n.Member(key); stray != nil {
			r.wrongKey(stray, "not for a server with %s = %q: remove it", keys.transport, s.Transport)
		}
	}
}

// hasCommand reports a missing program.
func (s *Server) hasCommand(r *reader, n, command *document.Node, keys serverKeys) {
	if command == nil {
		r.missing(n, keys.stdio[0], "missing: expected the program to start, such as %s", keys.command)
		return
	}
	arguments, ok := command.Value.(document.List)
	switch {
	case ok && len(arguments) == 0:
		r.wrong(command, "expected the program to start, not an empty list: write it, such as %s", keys.command)
	case len(s.Command) > 0 && s.Command[0].held != nil && s.Command[0].Reveal() == "" && !r.lenient:
		r.wrong(command, "expected the program to start as the first word, not an empty string")
	}
}

// environmentValue is a secret that may be empty.
func environmentValue(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *document.Node) {
		if e, ok := r.replace(n); ok {
			*to = valueOf(e, hiddenText)
		}
	}}
}

// directory is a path. Relative paths start at the directory of the file.
func directory(to *Value) value {
	return value{kind: "a path", read: func(r *reader, n *document.Node) {
		e, ok := r.replace(n)
		if !ok || !r.filled(n, e) {
			return
		}
		if !filepath.IsAbs(e.Text) {
			e.Text = filepath.Join(r.source.Of(n).Folder(), e.Text)
		}
		*to = valueOf(e, e.Shown)
	}}
}

// lenientIf returns v for a table that allows unset variables if its member key has the
// value off, because the table is not used then.
func (v value) lenientIf(key string, off bool) value {
	read := v.read
	v.read = func(r *reader, n *document.Node) {
		if m := n.Member(key); m != nil && m.Value == off {
			r.lenient = true
			defer func() { r.lenient = false }()
		}
		read(r, n)
	}
	return v
}
