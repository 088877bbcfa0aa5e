// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/suggest"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain describes the errors of the validator in words that a model can act on:
// the actual value and the expected one.
func explain(broken *jsonschema.ValidationError, value, schema any) []violation {
	e := explainer{value: value, schema: schema}
	return arrange(e.named(arrange(e.explain(broken))))
}

type explainer struct {
	value  any // the value that was checked
	schema any // the schema that it was checked against, if known
}

func (e explainer) explain(broken *jsonschema.ValidationError) []violation {
	switch broken.ErrorKind.(type) {
	case nil, *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return e.all(broken.Causes)
	case *kind.AnyOf:
		return e.choice(broken)
	case *kind.OneOf:
		if len(broken.Causes) > 0 {
			return e.choice(broken)
		}
	case *kind.Required, *kind.Dependency, *kind.DependentRequired, *kind.AdditionalProperties:
		return e.members(broken)
	}
	if wanted := wantedOf(broken); wanted != nil {
		return []violation{e.unwanted(broken, wanted)}
	}
	return []violation{{pointer: pointerOf(broken.InstanceLocation), text: e.text(broken)}}
}

func (e explainer) all(causes []*jsonschema.ValidationError) []violation {
	var violations []violation
	for _, cause := range causes {
		violations = append(violations, e.explain(cause)...)
	}
	return violations
}

// choice explains anyOf and oneOf. If only the type or the value is wrong, one
// line lists the allowed ones; otherwise it explains the violations of the form
// that fits best.
func (e explainer) choice(broken *jsonschema.ValidationError) []violation {
	pointer := pointerOf(broken.InstanceLocation)
	var wanted []string
	for _, cause := range broken.Causes {
		w := wantedOf(innermost(cause))
		if w == nil || !slices.Equal(innermost(cause).InstanceLocation, broken.InstanceLocation) {
			return e.nearestForm(pointer, broken.Causes)
		}
		wanted = append(wanted, w...)
	}
	slices.Sort(wanted)
	return []violation{e.unwanted(broken, slices.Compact(wanted))}
}

func (e explainer) unwanted(broken *jsonschema.ValidationError, wanted []string) violation {
	text := e.subject(broken) + " is not " + wanted[0]
	if len(wanted) > 1 {
		text = e.subject(broken) + " is not one of " + listed(wanted, ", ")
	}
	_, wrongType := broken.ErrorKind.(*kind.Type)
	return violation{pointer: pointerOf(broken.InstanceLocation), text: text, wrongType: wrongType, wrongValue: !wrongType}
}

func (e explainer) nearestForm(pointer string, forms []*jsonschema.ValidationError) []violation {
	var nearest []violation
	least, number := -1, 0
	for i, form := range forms {
		violations := e.explain(form)
		weight := len(violations)
		for _, v := range violations {
			weight += v.others
			switch {
			case v.pointer == pointer && (v.wrongType || v.wrongValue):
				weight += 1000 // something completely different
			case v.wrongValue:
				weight += 10 // possibly the value that distinguishes the forms
			}
		}
		if least < 0 || weight < least {
			nearest, least, number = violations, weight, i+1
		}
	}
	if len(forms) == 1 {
		return nearest
	}
	head := violation{pointer: pointer, text: fmt.Sprintf("fits none of the %d allowed forms (the other lines on it are for form %d, the nearest)", len(forms), number)}
	return append([]violation{head}, nearest...)
}

// innermost unwraps references and groups with a single cause.
func innermost(broken *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(broken.Causes) == 1 {
		switch broken.ErrorKind.(type) {
		case *kind.Reference, *kind.Group, *kind.AllOf:
			broken = broken.Causes[0]
		default:
			return broken
		}
	}
	return broken
}

// wantedOf returns the allowed types or values if the type or value is wrong, and
// otherwise nil.
func wantedOf(broken *jsonschema.ValidationError) []string {
	var wanted []string
	switch k := broken.ErrorKind.(type) {
	case *kind.Type:
		for _, name := range k.Want {
			wanted = append(wanted, withArticle(name))
		}
	case *kind.Const:
		wanted = []string{shown(k.Want)}
	case *kind.Enum:
		for _, v := range k.Want {
			wanted = append(wanted, shown(v))
		}
	}
	return wanted
}

func withArticle(typeName string) string {
	switch typeName {
	case "null":
		return typeName
	case "integer", "object", "array":
		return "an " + typeName
	}
	return "a " + typeName
}

// members explains missing and unexpected members.
func (e explainer) members(broken *jsonschema.ValidationError) []violation {
	var violations []violation
	add := func(name, text string) {
		path := append(slices.Clone(broken.InstanceLocation), name)
		violations = append(violations, violation{pointer: pointerOf(path), text: text})
	}
	switch k := broken.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(name, "is missing (required)")
		}
	case *kind.Dependency:
		for _, name := range k.Missing {
			add(name, "is missing (required because "+shown(k.Prop)+" is given)")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add(name, "is missing (required because "+shown(k.Prop)+" is given)")
		}
	case *kind.AdditionalProperties:
		place, names := pointerOf(broken.InstanceLocation), first(k.Properties, maxNamed)
		for _, name := range names {
			violations = append(violations, violation{pointer: place + "/" + name, text: "is not a known property", unknownTo: broken.SchemaURL})
		}
		last := &violations[len(names)-1]
		if last.others = len(k.Properties) - len(names); last.others > 0 {
			last.all = k.Properties
		}
	}
	return violations
}

// first returns the first n names in their order, as they are written in pointers.
func first(names []string, n int) []string {
	var found []string
	for _, name := range names {
		name = pointerEscapes.Replace(name)
		if len(found) == n && name >= found[n-1] {
			continue
		}
		place, _ := slices.BinarySearch(found, name)
		found = slices.Insert(found[:min(len(found), n-1)], place, name)
	}
	return found
}

// named adds the known properties to the first violations by unknown ones, as many as a report
// shows: each is compared with all that are known.
func (e explainer) named(violations []violation) []violation {
	known := map[string][]string{}
	for i := range violations {
		v := &violations[i]
		if i >= maxViolations && v.pointer != violations[i-1].pointer {
			break
		}
		if v.unknownTo == "" {
			continue
		}
		if _, ok := known[v.unknownTo]; !ok {
			known[v.unknownTo] = e.known(v.unknownTo)
		}
		name := v.pointer[strings.LastIndexByte(v.pointer, '/')+1:]
		v.text, v.unknownTo = unknownMember(pointerNames.Replace(name), known[v.unknownTo]), ""
	}
	return violations
}

func unknownMember(name string, known []string) string {
	if len(known) == 0 {
		return "is not allowed: no properties are known here"
	}
	text := "is not a known property; the known ones are " + listed(known, ", ")
	if meant := suggest.Name(name, known); meant != "" {
		text += " (did you mean " + meant + "?)"
	}
	return text
}

// known returns the names of the properties of the schema at url.
func (e explainer) known(at string) []string {
	_, fragment, _ := strings.Cut(at, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	schema, _ := lookup(e.schema, pathOf(pointer)).(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, textcut.Bytes(printable(name), maxShown))
	}
	slices.Sort(names)
	return names
}

// text explains a violation by a single value, according to its keyword.
func (e explainer) text(broken *jsonschema.ValidationError) string {
	it := e.subject(broken)
	switch k := broken.ErrorKind.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("%s is less than the minimum %s", it, ratio(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("%s is greater than the maximum %s", it, ratio(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("%s is not greater than %s", it, ratio(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("%s is not less than %s", it, ratio(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf("%s is not a multiple of %s", it, ratio(k.Want))
	case *kind.MinLength:
		return fmt.Sprintf("has %s; at least %d needed", number(k.Got, "character"), k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %s; at most %d allowed", number(k.Got, "character"), k.Want)
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match the pattern %s", shown(k.Got), textcut.Bytes(printable(k.Want), maxShown))
	case *kind.Format:
		return formatFault(it, k.Want)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "matches a schema that is excluded here (not)"
	case *kind.OneOf:
		return fmt.Sprintf("fits more than one of the allowed forms (%d and %d); it must fit exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1)
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself"
	}
	return e.manyText(broken)
}

// manyText explains a violation by the parts of an object or array.
func (e explainer) manyText(broken *jsonschema.ValidationError) string {
	switch k := broken.ErrorKind.(type) {
	case *kind.MinItems:
		return fmt.Sprintf("has %s; at least %d needed", number(k.Got, "item"), k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %s; at most %d allowed", number(k.Got, "item"), k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s more than allowed", number(k.Count, "item"))
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal; all items must be different", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "has no item of the kind that it must contain"
	case *kind.MinContains:
		return fmt.Sprintf("has %s of the kind that it must contain; at least %d needed", number(len(k.Got), "item"), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("has %s of the kind that it may contain; at most %d allowed", number(len(k.Got), "item"), k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("has %s; at least %d needed", number(k.Got, "property"), k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %s; at most %d allowed", number(k.Got, "property"), k.Want)
	case *kind.PropertyNames:
		return fmt.Sprintf("the name %s is not allowed%s", shown(k.Property), reasons(broken.Causes, k.Property))
	}
	return "breaks the rule " + strings.Join(broken.ErrorKind.KeywordPath(), "/")
}

// reasons explains why the name of a property is not allowed.
func reasons(causes []*jsonschema.ValidationError, name string) string {
	var texts []string
	for _, v := range arrange(explainer{value: name}.all(causes)) {
		texts = append(texts, v.text)
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + listed(texts, "; ")
}

// subject returns the text for the value that broken is about.
func (e explainer) subject(broken *jsonschema.ValidationError) string {
	switch broken.ErrorKind.(type) {
	case *kind.Type, *kind.AnyOf, *kind.OneOf:
		return subject(lookup(e.value, broken.InstanceLocation))
	}
	return shown(lookup(e.value, broken.InstanceLocation))
}

// lookup returns the value at path in value, or nil.
func lookup(value any, path []string) any {
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func ratio(r *big.Rat) string {
	if r.IsInt() {
		return textcut.Bytes(r.Num().String(), maxShown)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func number(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
