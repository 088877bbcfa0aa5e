// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
)

// override sets the settings of the command line in the tree of the file.
func (o *Options) override(r *grammar.Reader, root *document.Node) {
	before := placeOf(r, root.Member("model"))
	for _, setting := range o.Set {
		o.set(r.Faults, root, setting)
	}
	relocate(r, root.Member("model"), before)
	for kind, places := range serverPlaces {
		if servers := root.Member(kind); servers != nil {
			for _, server := range servers.Members() {
				relocateServer(r, server, places)
			}
		}
	}
}

// set sets one KEY=VALUE.
func (o *Options) set(ps *grammar.Faults, root *document.Node, setting string) {
	key, text, found := strings.Cut(setting, "=")
	key = strings.TrimSpace(key)
	src := &document.Source{Name: cmp.Or(o.SetBy[key], "--set "+key), Flag: true}
	keys, _ := document.TOML(&document.Source{Data: []byte(key + " = 0")})
	if !found || keys == nil || len(keys.Members()) != 1 {
		ps.Add(&document.Fault{File: "--set", Message: "expected KEY=VALUE with a dotted key of the configuration, such as --set model.temperature=0.2"})
		return
	}
	in, last := root, keys.Members()[0]
	for ; last.Members() != nil; last = last.Members()[0] {
		next := in.Member(last.Key)
		if _, isList := next.AsList(); isList {
			ps.Add(grammar.FaultAt(src, 0, key, "%s is a list, which is set as a whole: --set '%s=[…]'", next.Path(), next.Path()))
			return
		}
		if next == nil || next.Members() == nil {
			next = &document.Node{Key: last.Key, Source: src, Value: document.NewTable()}
			in.Set(next)
		}
		in = next
	}
	leaf := &document.Node{Key: last.Key, Source: src}
	in.Set(leaf)
	setText(ps, leaf, strings.TrimSpace(text))
}

// setText sets the value of n to a text of the command line: a value of TOML, or else a
// string.
func setText(ps *grammar.Faults, n *document.Node, text string) {
	n.Value = text
	tree, faults := document.TOML(&document.Source{Data: []byte("v = " + text)})
	switch {
	case len(faults) > 0 && text != "" && strings.ContainsRune(`"'[{`, rune(text[0])):
		ps.Add(grammar.FaultAt(n.Source, 0, n.Path(), "%s", faults[0].Message))
	case len(faults) > 0 || len(tree.Members()) != 1:
	default:
		parsed := tree.Members()[0]
		if _, isDate := parsed.Value.(document.Moment); isDate { // no key has dates
			return
		}
		n.Value = parsed.Value
		elements, _ := parsed.AsList()
		for _, child := range append(parsed.Members(), elements...) {
			child.Parent = n
		}
	}
}

// textOf returns the string n with its variables replaced, or "".
func textOf(r *grammar.Reader, n *document.Node) string {
	if n == nil {
		return ""
	}
	text, _ := n.Value.(string)
	out, _ := r.Expand(text)
	return out.Text
}

// placeKeys are the keys of [model] that belong to one server: its address, its API and
// the data that only this server may receive.
var placeKeys = []string{"base_url", "provider", "api", "api_key", "headers", "organization", "project", "hosted_tools", "extra_body"}

// placeOf returns a model with the keys of a table that say which server has it.
func placeOf(r *grammar.Reader, table *document.Node) *Model {
	if table == nil {
		return &Model{}
	}
	return &Model{
		Name: values.Plain(textOf(r, table.Member("name"))), Kind: textOf(r, table.Member("provider")), BaseURL: values.Plain(textOf(r, table.Member("base_url"))),
	}
}

func isFlag(r *grammar.Reader, n *document.Node) bool { return n != nil && r.Source.Of(n).Flag }

// relocate removes the keys of the file that do not apply if the command line moves the
// model to another server: by its address, or by a name or a provider that makes it a model
// of the other provider where the file has one of a provider's own. So the file's
// credentials are sent only to the server that the file means. before is the model of the
// file.
func relocate(r *grammar.Reader, table *document.Node, before *Model) {
	if table == nil {
		return
	}
	after, moves := placeOf(r, table), isFlag(r, table.Member("base_url"))
	named := isFlag(r, table.Member("name")) || isFlag(r, table.Member("provider"))
	switch {
	case moves || !named || before.decisive().KeyVariable() == "":
	case after.BaseURL.Reveal() == "":
		moves = after.decisive().Of() != before.decisive().Of() || after.isContradictory()
	default: // the file writes the address of a provider
		moves = after.isContradictory()
	}
	if moves {
		removeUnflagged(r, table, placeKeys...)
	}
}

// removeUnflagged removes members of a table, and members of theirs, that the command line
// does not set.
func removeUnflagged(r *grammar.Reader, table *document.Node, keys ...string) {
	for _, key := range keys {
		m := table.Member(key)
		if m == nil || isFlag(r, m) {
			continue
		}
		for _, inner := range slices.Clone(m.Members()) {
			removeUnflagged(r, m, inner.Key)
		}
		if len(m.Members()) == 0 {
			table.Remove(key)
		}
	}
}

// serverPlaces has the keys that say where a server is, and the keys with data that only
// this server may receive, by the table of servers.
var serverPlaces = map[string][2][]string{
	"mcp":  {{"url"}, {"headers", "oauth"}},
	"grpc": {{"address", "dapr"}, {"token", "metadata", "tls"}},
}

// relocateServer does for a server what relocate does for the model. A trusted argument
// cannot be removed, since the model would then choose it.
func relocateServer(r *grammar.Reader, server *document.Node, places [2][]string) {
	at := slices.IndexFunc(places[0], func(key string) bool { return isFlag(r, server.Member(key)) })
	if at < 0 || isFlag(r, server) {
		return
	}
	removeUnflagged(r, server, places[1]...)
	trusted := server.Member("trusted")
	if trusted == nil {
		return
	}
	removeUnflagged(r, trusted, "headers", "metadata")
	if arguments := trusted.Member("arguments"); arguments != nil {
		for _, argument := range arguments.Members() {
			if !isFlag(r, argument) {
				r.WrongKey(server.Member(places[0][at]), "the server moves, and its tools would receive a trusted value; repeat that with --set %s=NAME", argument.Path())
			}
		}
	}
}
