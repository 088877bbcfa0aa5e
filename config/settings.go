// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"
)

// override sets the settings of the command line in the tree of the file.
func (o *Options) override(r *reader, root *node) {
	before := r.placeOf(root.member("model"))
	for _, setting := range o.Set {
		o.set(r.problems, root, setting)
	}
	r.relocate(root.member("model"), before)
	for kind, places := range serverPlaces {
		if servers := root.member(kind); servers != nil {
			for _, server := range servers.members() {
				r.relocateServer(server, places)
			}
		}
	}
}

// set sets one KEY=VALUE.
func (o *Options) set(ps *problems, root *node, setting string) {
	key, text, found := strings.Cut(setting, "=")
	key = strings.TrimSpace(key)
	src := &source{name: cmp.Or(o.SetBy[key], "--set "+key), flag: true}
	keys, _ := tomlTree(&source{data: []byte(key + " = 0")})
	if !found || keys == nil || len(keys.members()) != 1 {
		ps.add(&Problem{File: "--set", Message: "expected KEY=VALUE with a dotted key of the configuration, such as --set model.temperature=0.2"})
		return
	}
	in, last := root, keys.members()[0]
	for ; last.members() != nil; last = last.members()[0] {
		next := in.member(last.key)
		if _, isList := next.asList(); isList {
			ps.add(problemAt(src, 0, key, "%s is a list, which is set as a whole: --set '%s=[…]'", next.path(), next.path()))
			return
		}
		if next == nil || next.members() == nil {
			next = &node{key: last.key, source: src, value: newTable()}
			in.set(next)
		}
		in = next
	}
	leaf := &node{key: last.key, source: src}
	in.set(leaf)
	setText(ps, leaf, strings.TrimSpace(text))
}

// setText sets the value of n to a text of the command line: a value of TOML, or else a
// string.
func setText(ps *problems, n *node, text string) {
	n.value = text
	tree, faults := tomlTree(&source{data: []byte("v = " + text)})
	switch {
	case len(faults) > 0 && text != "" && strings.ContainsRune(`"'[{`, rune(text[0])):
		ps.add(problemAt(n.source, 0, n.path(), "%s", faults[0].message))
	case len(faults) > 0 || len(tree.members()) != 1:
	default:
		parsed := tree.members()[0]
		if _, isDate := parsed.value.(moment); isDate { // no key has dates
			return
		}
		n.value = parsed.value
		elements, _ := parsed.asList()
		for _, child := range append(parsed.members(), elements...) {
			child.parent = n
		}
	}
}

// textOf returns the string n with its variables replaced, or "".
func (r *reader) textOf(n *node) string {
	if n == nil {
		return ""
	}
	text, _ := n.value.(string)
	out, _ := r.Expand(text)
	return out.Text
}

// placeKeys are the keys of [model] that belong to one server: its address, its API and
// the data that only this server may receive.
var placeKeys = []string{"base_url", "provider", "api", "api_key", "headers", "organization", "project", "hosted_tools", "extra_body"}

// placeOf returns a model with the keys of a table that say which server has it.
func (r *reader) placeOf(table *node) *Model {
	if table == nil {
		return &Model{}
	}
	return &Model{
		Name: Plain(r.textOf(table.member("name"))), Kind: r.textOf(table.member("provider")), BaseURL: Plain(r.textOf(table.member("base_url"))),
	}
}

func (r *reader) isFlag(n *node) bool { return n != nil && r.source.of(n).flag }

// relocate removes the keys of the file that do not apply if the command line moves the
// model to another server: by its address, or by a name or a provider that makes it a model
// of the other provider where the file has one of a provider's own. So the file's
// credentials are sent only to the server that the file means. before is the model of the
// file.
func (r *reader) relocate(table *node, before *Model) {
	if table == nil {
		return
	}
	after, moves := r.placeOf(table), r.isFlag(table.member("base_url"))
	named := r.isFlag(table.member("name")) || r.isFlag(table.member("provider"))
	switch {
	case moves || !named || before.keyVariable() == "":
	case after.BaseURL.Reveal() == "":
		moves = after.provider() != before.provider() || after.wrongProvider().key != ""
	default: // the file writes the address of a provider
		moves = after.wrongProvider().key != ""
	}
	if moves {
		r.removeUnflagged(table, placeKeys...)
	}
}

// removeUnflagged removes members of a table, and members of theirs, that the command line
// does not set.
func (r *reader) removeUnflagged(table *node, keys ...string) {
	for _, key := range keys {
		m := table.member(key)
		if m == nil || r.isFlag(m) {
			continue
		}
		for _, inner := range slices.Clone(m.members()) {
			r.removeUnflagged(m, inner.key)
		}
		if len(m.members()) == 0 {
			table.remove(key)
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
func (r *reader) relocateServer(server *node, places [2][]string) {
	at := slices.IndexFunc(places[0], func(key string) bool { return r.isFlag(server.member(key)) })
	if at < 0 || r.isFlag(server) {
		return
	}
	r.removeUnflagged(server, places[1]...)
	trusted := server.member("trusted")
	if trusted == nil {
		return
	}
	r.removeUnflagged(trusted, "headers", "metadata")
	if arguments := trusted.member("arguments"); arguments != nil {
		for _, argument := range arguments.members() {
			if !r.isFlag(argument) {
				r.wrongKey(server.member(places[0][at]), "the server moves, and its tools would receive a trusted value; repeat that with --set %s=NAME", argument.path())
			}
		}
	}
}

// providerOf returns the provider whose models have such names, or "".
func providerOf(name string) string {
	if strings.HasPrefix(name, "claude") {
		return providerAnthropic
	}
	for _, prefix := range []string{"gpt-", "o1", "o3", "o4"} {
		if strings.HasPrefix(name, prefix) {
			return providerOpenAI
		}
	}
	return ""
}
