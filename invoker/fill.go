// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/contain"
)

// Fill returns an invoker that calls inv with trusted values as arguments. The
// map has, for each argument, the name of the trusted value that fills it. Use it to pass
// an identity to a tool that is not part of this program, such as one of an MCP
// server.
//
// These arguments are removed from the schema, and a call that includes one is
// refused as [Forged]. Without the trusted values a call fails with
// [Unauthorized]. Fill returns an error if inv does not take one of the
// arguments, or if it requires an argument that no caller may send.
func Fill(inv Invoker, arguments map[string]string) (Invoker, error) {
	if contain.IsNil(inv) {
		return nil, errNoTool
	}
	def := inv.Definition()
	for _, argument := range slices.Sorted(maps.Keys(arguments)) {
		switch {
		case arguments[argument] == "":
			return nil, fmt.Errorf("tool %q: the trusted value for the argument %q has no name", def.Name, argument)
		case !def.Takes(argument):
			return nil, fmt.Errorf("tool %q has no argument %q to fill with a trusted value", def.Name, argument)
		}
	}
	return guard(inv, rules{fills: arguments})
}

// Withhold returns an invoker that refuses these arguments as [Forged], whether
// or not they are in the schema, and removes them from the schema. The map has, for each
// argument, the name that Forged reports; no value is filled in or required. It is an
// error if inv requires one of the arguments.
func Withhold(inv Invoker, arguments map[string]string) (Invoker, error) {
	return guard(inv, rules{withheld: arguments})
}

// Require returns an invoker that calls inv only if the trusted values with these
// names are present; otherwise the call fails with [Unauthorized]. Arguments with these
// names are refused as by [Withhold]. It is an error if a name is empty, or if inv
// requires such an argument.
func Require(inv Invoker, names ...string) (Invoker, error) {
	var needs []Need
	for _, name := range names {
		needs = append(needs, named(name))
	}
	return guard(inv, rules{needs: needs})
}

// errNoTool is returned by Fill, Withhold and Require for a nil Invoker.
var errNoTool = errors.New("the invoker is nil")

// guard wraps inv in a tool with rules of its own.
func guard(inv Invoker, by rules) (Invoker, error) {
	if contain.IsNil(inv) {
		return nil, errNoTool
	}
	if len(by.fills) == 0 && len(by.withheld) == 0 && len(by.needs) == 0 {
		return inv, nil
	}
	def := *inv.Definition()
	f := &filler{inv: inv, fills: by.fills, types: by.types}
	for _, value := range by.fills {
		by.needs = append(by.needs, named(value))
	}
	by.uncheckedResults = true
	t, err := newTool(def, f.run, by)
	if err != nil {
		return nil, err
	}
	if f.whole, err = newChecker(orObject(def.InputSchema), by.assertFormats); err != nil {
		return nil, fmt.Errorf("the input schema of tool %q cannot be used: %w", def.Name, err)
	}
	if name := t.unsendable(inv.Definition().InputSchema, by.fills); name != "" {
		return nil, fmt.Errorf("tool %q requires the argument %q, which callers may not send: fill it with a trusted value", def.Name, name)
	}
	return t, nil
}

// unsendable returns an argument that a schema requires, but that is neither
// filled in nor allowed in a call.
func (t *tool) unsendable(schema json.RawMessage, fills map[string]string) string {
	var root map[string]json.RawMessage // a struct would take "Required" for "required"
	var required []string
	if json.Unmarshal(schema, &root) != nil || json.Unmarshal(root["required"], &required) != nil {
		return "" // nothing is required, or in an unknown dialect
	}
	for _, name := range required {
		if _, ok := fills[name]; !ok && t.closed.has(name) {
			return name
		}
	}
	return ""
}

type filler struct {
	inv   Invoker
	fills map[string]string
	types map[string]reflect.Type // of the fields that are filled in, if they belong to a Go function
	whole *checker                // for all arguments, including those that were filled in
}

func (f *filler) run(ctx context.Context, call *Call, arguments any) (Output, error) {
	if len(f.fills) == 0 {
		return f.inv.Invoke(ctx, call)
	}
	all := maps.Clone(arguments.(map[string]any)) // has been checked to be an object
	var added []byte
	for _, argument := range slices.Sorted(maps.Keys(f.fills)) {
		value, _ := TrustedValue(ctx, f.fills[argument])
		text, err := value.Reveal()
		if err != nil {
			return Output{}, unfit(f.fills[argument], err)
		}
		parsed, _, faults := parse(text)
		if len(faults) > 0 || !f.holds(argument, text) {
			return Output{}, unfit(f.fills[argument], fmt.Errorf("the trusted value %q cannot be the argument %q", value.Name(), argument))
		}
		all[argument] = parsed
		name, _ := json.Marshal(argument) // a string can be marshaled
		added = slices.Concat(added, name, []byte(":"), text, []byte(","))
	}
	if failure := f.misfit(all); failure != nil {
		return Output{}, failure
	}
	own := *call
	own.Arguments = insert(call.Arguments, added)
	return f.inv.Invoke(ctx, &own)
}

// holds reports whether the field of an argument can hold the value. It does not
// return the error of package json or the type's own method, which can contain
// the value.
func (f *filler) holds(argument string, text json.RawMessage) bool {
	t := f.types[argument]
	return t == nil || json.Unmarshal(text, reflect.New(t).Interface()) == nil
}

// insert puts members, each followed by a comma, at the start of an object.
func insert(object json.RawMessage, members []byte) json.RawMessage {
	rest := bytes.TrimSpace(object)[1:]
	if bytes.TrimSpace(rest)[0] == '}' {
		members = members[:len(members)-1]
	}
	return slices.Concat(json.RawMessage("{"), members, rest)
}

// misfit names the trusted value that the tool does not accept. It does not use
// the text of the checker's violation, which can contain the value.
func (f *filler) misfit(all any) *Failure {
	for _, v := range f.whole.check(all) {
		for _, argument := range slices.Sorted(maps.Keys(f.fills)) {
			place, name := pointerOf([]string{argument}), f.fills[argument]
			if v.pointer == place || strings.HasPrefix(v.pointer, place+"/") || v.pointer == "" && v.wrongValue {
				return unfit(name, fmt.Errorf("the trusted value %q does not fit the argument %q", name, argument))
			}
		}
	}
	return nil
}

func unfit(name string, cause error) *Failure {
	return &Failure{
		Code:    Internal,
		Message: "The tool was not run: " + name + ", which the program sets, is not a value that the tool accepts. No argument can change that.",
		Cause:   cause,
	}
}
