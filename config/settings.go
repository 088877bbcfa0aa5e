// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"strings"
)

// override sets the settings of the command line in the tree of the file.
func (o *Options) override(r *reader, root *node) {
	var was string
	if model := root.member("model"); model != nil {
		was = r.textOf(model.member("name"))
	}
	for _, setting := range o.Set {
		o.set(r.problems, root, setting)
	}
	if model := root.member("model"); model != nil {
		r.relocate(model, was)
	}
}

// set sets one KEY=VALUE.
func (o *Options) set(ps *problems, root *node, setting string) {
	key, text, found := strings.Cut(setting, "=")
	key = strings.TrimSpace(key)
	src := &source{name: cmp.Or(o.SetBy[key], "--set "+key), flag: true}
	keys := tomlTree(&source{data: []byte(key + " = 0")}, &problems{})
	if !found || keys == nil || len(keys.members()) != 1 {
		ps.add(&Problem{File: "--set", Message: "expected KEY=VALUE with a dotted key of the configuration, such as --set model.temperature=0.2"})
		return
	}
	in, last := root, keys.members()[0]
	for ; last.members() != nil; last = last.members()[0] {
		next := in.member(last.key)
		if _, isList := next.asList(); isList {
			ps.add(src.problem(0, key, "%s is a list, which is set as a whole: --set '%s=[…]'", next.path(), next.path()))
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
	leaf.fromText(ps, strings.TrimSpace(text))
}

// fromText sets the value of n to a text of the command line: a value of TOML, or else a
// string.
func (n *node) fromText(ps *problems, text string) {
	n.value = text
	wrong := &problems{}
	tree := tomlTree(&source{data: []byte("v = " + text)}, wrong)
	switch {
	case len(wrong.list) > 0 && text != "" && strings.ContainsRune(`"'[{`, rune(text[0])):
		ps.add(n.source.problem(0, n.path(), "%s", wrong.list[0].Message))
	case len(wrong.list) > 0 || len(tree.members()) != 1:
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

// relocate removes the keys of the file that do not apply if the command line moves the
// model to another server: by its address, or by a name of the other provider where the file
// has one of a provider's own models. So the file's credentials are sent only to the
// server that the file names. was is the name in the file.
func (r *reader) relocate(model *node, was string) {
	base, name := model.member("base_url"), model.member("name")
	isFlag := func(n *node) bool { return n != nil && r.source.of(n).flag }
	file := &Model{Name: Plain(was), BaseURL: Plain(r.textOf(base))}
	family := providerOf(r.textOf(name))
	switch {
	case isFlag(base):
	case isFlag(name) && file.keyVariable() != "" && family != "" && providerOf(was) != "" && family != providerOf(was):
	default:
		return
	}
	for _, key := range placeKeys {
		if m := model.member(key); m != nil && !isFlag(m) {
			model.remove(key)
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
