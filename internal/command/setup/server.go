// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/tomltext"
)

// server is a server of another host, as a table of a configuration.
type server struct {
	Name string
	From []string // the files, for people
	// Secrets are the keys of its table with values that look like secrets.
	Secrets []string
	// Missing are the variables that it needs and that are not set. Such a server is
	// written with enabled = false.
	Missing []string

	origin *origin
	table  string // the lines below its header
}

// origin is a file with servers.
type origin struct {
	file    hostFile
	whole   bool // import = ["FILE"] has the same servers as the found ones
	servers int  // that were found in it
}

// entry is a server in the file of a host.
type entry struct {
	Type, Transport         string
	Command                 string
	Args                    []string
	Env                     map[string]any
	Cwd                     string
	URL, ServerURL, HTTPURL string
	Headers                 map[string]string
	Disabled                bool
	IncludeTools            []string // Gemini CLI
	ExcludeTools            []string
}

// newServer converts an entry. It returns nil if the server is disabled, and the reason if
// it cannot be imported.
func newServer(from *origin, name string, text json.RawMessage) (s *server, reason string) {
	var e entry
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a number in env stays as it is written
	if err := decoder.Decode(&e); err != nil {
		return nil, err.Error()
	}
	switch {
	case e.Disabled:
		return nil, ""
	case isSelf(e):
		return nil, "it is this program"
	}
	s = &server{Name: name, From: []string{from.file.label()}, origin: from}
	w := &tableWriter{server: s}
	s.write(w, e)
	if w.fault != "" {
		return nil, w.fault
	}
	s.table = w.lines.String()
	if len(s.Missing) > 0 {
		slices.Sort(s.Missing)
		s.Missing = slices.Compact(s.Missing)
		s.table = "enabled = false   # set " + strings.Join(s.Missing, " and ") + ", then remove this line\n" + s.table
	}
	if err := s.check(); err != nil {
		return nil, err.Error()
	}
	if len(e.IncludeTools)+len(e.ExcludeTools) > 0 || len(s.Missing) > 0 || w.changed {
		from.whole = false
	}
	return s, ""
}

// isSelf reports whether a host starts this program as a server.
func isSelf(e entry) bool {
	base := strings.TrimSuffix(filepath.Base(filepath.ToSlash(e.Command)), ".exe")
	return base == "consort" && slices.Contains(e.Args, "serve")
}

// name returns the n-th name to try for the server.
func (s *server) name(n int) string {
	host := strings.ToLower(strings.ReplaceAll(s.origin.file.host, " ", "-"))
	switch n {
	case 1:
		return s.Name
	case 2:
		return s.Name + "-" + host
	}
	return fmt.Sprintf("%s-%s-%d", s.Name, host, n-1)
}

// check reads the table as a configuration.
func (s *server) check() error {
	_, err := config.Parse("server", []byte(s.block()), nil)
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		return errors.New(wrong.Problems[0].Message)
	}
	return err
}

// block returns the table with its header.
func (s *server) block() string { return "[mcp." + key(s.Name) + "]\n" + s.table }

// write writes the keys of the entry.
func (s *server) write(w *tableWriter, e entry) {
	url := cmp.Or(e.HTTPURL, e.ServerURL, e.URL)
	switch kind := cmp.Or(e.Type, e.Transport); {
	case e.Command == "" && url == "":
		w.fail("it has neither a command nor a url")
	case kind == "sse", s.origin.file.dialect.sseURL && e.HTTPURL == "" && e.URL != "" && kind == "":
		w.line("transport", tomltext.Quote("sse"))
		w.changed = w.changed || kind == ""
	}
	if e.Command != "" {
		w.list("command", append([]string{e.Command}, e.Args...))
		w.arguments(e.Args)
	}
	env := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		switch value := e.Env[name].(type) {
		case nil:
		case string, bool, json.Number:
			env[name] = fmt.Sprint(value)
		default:
			w.fail("the value of the variable " + name + " is not text")
		}
	}
	w.table("environment", env)
	folder := s.inProject(e.Cwd)
	w.changed = w.changed || folder != e.Cwd
	w.text("directory", folder)
	w.text("url", url)
	if hasCredentials(url) {
		w.secret("url")
	}
	w.table("headers", e.Headers)
	w.list("allow", e.IncludeTools)
	w.list("deny", e.ExcludeTools)
}

// inProject returns a path that is relative to the project of the file as an absolute one.
func (s *server) inProject(path string) string {
	project := s.origin.file.project
	if path == "" || project == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "$") {
		return path
	}
	return filepath.Join(project, path)
}

// tableWriter writes the lines of a server's table.
type tableWriter struct {
	server  *server
	lines   strings.Builder
	fault   string // why the server cannot be imported; the first one
	changed bool   // a value means something else when the file is imported as it is
}

func (w *tableWriter) fail(reason string) { w.fault = cmp.Or(w.fault, reason) }

func (w *tableWriter) line(name, value string) { fmt.Fprintf(&w.lines, "%s = %s\n", name, value) }

func (w *tableWriter) text(name, text string) {
	if text != "" {
		w.line(name, tomltext.Quote(w.translate(text)))
	}
}

func (w *tableWriter) list(name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	forms := make([]string, len(texts))
	for i, text := range texts {
		forms[i] = tomltext.Quote(w.translate(text))
	}
	w.line(name, "["+strings.Join(forms, ", ")+"]")
}

func (w *tableWriter) table(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	var forms []string
	for _, member := range slices.Sorted(maps.Keys(values)) {
		text := w.translate(values[member])
		forms = append(forms, key(member)+" = "+tomltext.Quote(text))
		if text != "" && !strings.Contains(text, "${") && (redact.Names(member) || hasCredentials(text)) {
			w.secret(name + "." + member)
		}
	}
	w.line(name, "{"+strings.Join(forms, ", ")+"}")
}

func (w *tableWriter) secret(key string) { w.server.Secrets = append(w.server.Secrets, key) }

// arguments looks for secrets in a command line: --token=VALUE, --token VALUE, TOKEN=VALUE,
// "Authorization: Bearer VALUE", and addresses with a password.
func (w *tableWriter) arguments(args []string) {
	for i, argument := range args {
		name, value, assigned := strings.Cut(argument, "=")
		if !assigned && strings.HasPrefix(name, "-") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		header, token, _ := strings.Cut(argument, ":")
		switch {
		case strings.Contains(argument, "${") || strings.Contains(value, "${"):
		case isNamed(name) && value != "",
			isNamed(header) && strings.TrimSpace(token) != "" && !strings.HasPrefix(token, "//"),
			hasCredentials(argument), hasCredentials(value):
			w.secret("command")
			return
		}
	}
}

// isNamed reports whether an option, a variable or a header has a secret, by its name.
func isNamed(name string) bool { return optionName.MatchString(name) && redact.Names(name) }

// hasCredentials reports whether a text is an address with a password or a token.
func hasCredentials(text string) bool { return strings.Join(redact.URL(text), "") != "" }

var (
	variable      = regexp.MustCompile(`\$\{([^}]*)\}`)
	plainVariable = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	optionName    = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	variableName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// translate returns a text with the variables of its host written as in a configuration,
// and notes which of them are not set.
func (w *tableWriter) translate(text string) string {
	file := w.server.origin.file
	if strings.HasPrefix(text, "env:") {
		w.fail("a text begins with env:, which names a variable here")
	}
	if file.dialect.plainVar && plainVariable.MatchString(text) {
		text = plainVariable.ReplaceAllString(text, "$${$1}")
		w.changed = true
	}
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimPrefix(found[2:len(found)-1], "env:")
		own, ok := w.editorVariable(name)
		if ok {
			w.changed = true
			return own
		}
		name, _, hasDefault := strings.Cut(name, ":-")
		if !variableName.MatchString(name) {
			w.fail("only " + file.host + " knows the variable " + found)
			return found
		}
		if _, set := os.LookupEnv(name); !set && !hasDefault {
			w.server.Missing = append(w.server.Missing, name)
		}
		return "${" + strings.TrimPrefix(found[2:], "env:")
	})
}

// editorVariable returns the value of a variable of VS Code and of editors made from it.
func (w *tableWriter) editorVariable(name string) (value string, ok bool) {
	project := w.server.origin.file.project
	switch name {
	case "userHome":
		home, err := os.UserHomeDir()
		return home, err == nil
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	case "workspaceFolder":
		if project == "" {
			w.fail("it belongs to a project: ${workspaceFolder}")
		}
		return project, true
	case "workspaceFolderBasename":
		if project == "" {
			w.fail("it belongs to a project: ${workspaceFolderBasename}")
		}
		return filepath.Base(project), true
	}
	return "", false
}
