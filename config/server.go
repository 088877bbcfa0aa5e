// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
)

// server is one [mcp.NAME] table.
func server(s **Server) value {
	*s = new(Server)
	v := tableOf((*s).fields(), (*s).check)
	return v.lenientIf("enabled", false)
}

func (s *Server) fields() []field {
	return []field{
		{"transport", choice(&s.Transport, Stdio, HTTP, SSE)},
		{"command", each(&s.Command, argument)},
		{"environment", byName(&s.Environment, environmentValue, variableName)},
		{"directory", directory(&s.Directory)},
		{"url", address(&s.URL)},
		{"headers", byName(&s.Headers, headerValue, headerName)},
		{"connect_timeout", duration(&s.ConnectTimeout)},
		{"call_timeout", duration(&s.CallTimeout)},
		{"allow", each(&s.Allow, text)},
		{"deny", each(&s.Deny, text)},
		{"settings", free(&s.Settings)},
		{"required", boolean(&s.Required)},
		{"protocol", protocolVersion(&s.Protocol)},
		{"enabled", not(&s.Disabled)},
	}
}

// check looks at the table as a whole.
func (s *Server) check(r *reader, n *node) {
	s.originate(r, n)
	s.reach(r, n, serverKeys{transport: "transport", stdio: []string{"command", "environment", "directory"}, http: []string{"url", "headers"}})
}

// originate notes where n stands.
func (s *Server) originate(r *reader, n *node) {
	line, _ := r.position(n.keyAt)
	s.Origin = fmt.Sprintf("%s:%d", r.name, line)
}

// serverKeys are the names of the keys that say how a server is reached, the
// main one of each way first.
type serverKeys struct {
	transport   string
	stdio, http []string
}

// reach sees to it that n says in one way how its server is reached, and
// infers the transport where n does not name it.
func (s *Server) reach(r *reader, n *node, keys serverKeys) {
	command, url := n.member(keys.stdio[0]), n.member(keys.http[0])
	named := n.member(keys.transport)
	switch {
	case command != nil && url != nil:
		later := command
		if url.keyAt > command.keyAt {
			later = url
		}
		r.add(r.problem(later.keyAt, later.path(), "a server has either %s or %s, not both", keys.stdio[0], keys.http[0]))
		return
	case command == nil && url == nil && (named == nil || s.Transport == ""):
		r.missing(n, keys.stdio[0], "missing: expected %s for a server that is started, or %s for one that is running", keys.stdio[0], keys.http[0])
		return
	case named != nil && s.Transport == "": // and reported
		return
	case s.Transport == "" && command != nil:
		s.Transport = Stdio
	case s.Transport == "":
		s.Transport = HTTP
	}
	wanted, other := keys.stdio, keys.http
	if s.Transport != Stdio {
		wanted, other = other, wanted
	}
	s.has(r, n, wanted[0])
	for _, key := range other {
		if stray := n.member(key); stray != nil {
			r.add(r.problem(stray.keyAt, stray.path(), "not for a server with %s = %q", keys.transport, s.Transport))
		}
	}
}

// has sees to it that the one thing is there that the transport needs.
func (s *Server) has(r *reader, n *node, key string) {
	given := n.member(key)
	switch {
	case given == nil && s.Transport == Stdio:
		r.missing(n, key, "missing: expected the program to start, such as %s", commandExample(key))
	case given == nil:
		r.missing(n, key, `missing: expected where the server is, such as url = "http://localhost:8080/mcp"`)
	case s.Transport == Stdio && len(s.Command) == 0 && isList(given):
		r.wrong(given, "expected the program to start, not an empty list")
	case s.Transport == Stdio && !r.lenient && len(s.Command) > 0 && s.Command[0].text != nil && s.Command[0].Reveal() == "":
		r.wrong(given, "expected the program to start first, not an empty string")
	}
}

func isList(n *node) bool {
	_, ok := n.value.(list)
	return ok
}

func commandExample(key string) string {
	if key == "command" {
		return `command = ["npx", "-y", "@modelcontextprotocol/server-everything"]`
	}
	return `"command": "npx"`
}

// environmentValue is a secret, and may be empty.
func environmentValue(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *node) {
		if e, ok := r.replace(n); ok {
			*to = Hidden(e.text)
		}
	}}
}

// directory is a path; one that is not absolute begins where the file is.
func directory(to *Value) value {
	return value{kind: "a path", read: func(r *reader, n *node) {
		e, ok := r.replace(n)
		if !ok || !r.filled(n, e) {
			return
		}
		path := e.text
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(r.name), path)
		}
		*to = Value{shown: e.shown, text: &path}
	}}
}

// lenientIf returns v for a table that may lack variables if its member key
// has the value off: nothing will come of it.
func (v value) lenientIf(key string, off bool) value {
	read := v.read
	v.read = func(r *reader, n *node) {
		if m := n.member(key); m != nil && m.value == off {
			r.lenient = true
			defer func() { r.lenient = false }()
		}
		read(r, n)
	}
	return v
}
