// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/consort-go/consort/internal/suggest"
)

// Method describes the tool that is made from a method; see [Methods].
type Method struct {
	// Name is the name of the tool. By default it is the method's name in
	// lower case with underscores: ListTaskIDs becomes list_task_ids.
	Name string
	// Description explains the tool to the model.
	Description string
	// Options are the options of [New].
	Options Options
}

// Methods makes tools from methods of receiver, usually a pointer to a struct
// with shared resources such as a database. The keys of methods are the names of
// the methods to use; other methods do not become tools. The tools are sorted by
// the names of their methods.
//
// A method takes a context and at most one argument, and returns at most one
// value and an error:
//
//	func (b *Book) Add(ctx context.Context, in Draft) (Task, error)
//	func (b *Book) Clear(ctx context.Context) error
//
// Argument, value and error are as for [New], and the methods may be called
// concurrently. The returned error lists all problems: missing methods, unsuitable
// signatures, and tools with the same name.
//
// Methods finds the methods by name, so the linker keeps every exported method of
// every type of a program that calls it. Where size matters, use [New] with a method
// value such as book.Add.
func Methods(receiver any, methods map[string]Method) ([]Invoker, error) {
	value := reflect.ValueOf(receiver)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("the tools need a receiver that is not nil")
	}
	var tools []Invoker
	var faults []error
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		m := methods[name]
		if m.Name == "" {
			m.Name = snakeCase(name)
		}
		if other, taken := owners[m.Name]; taken {
			faults = append(faults, fmt.Errorf("the methods %s and %s are both the tool %q; give one of them another Name", other, name, m.Name))
			continue
		}
		owners[m.Name] = name
		tool, err := methodTool(value, name, m)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		tools = append(tools, tool)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return tools, nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func methodTool(receiver reflect.Value, name string, m Method) (Invoker, error) {
	method := receiver.MethodByName(name)
	if !method.IsValid() {
		return nil, noMethod(receiver.Type(), name)
	}
	t := method.Type()
	takes := t.NumIn() == 2
	gives := t.NumOut() == 2
	if t.IsVariadic() || t.NumIn() == 0 || t.NumIn() > 2 || t.In(0) != contextType ||
		t.NumOut() == 0 || t.NumOut() > 2 || t.Out(t.NumOut()-1) != errorType {
		return nil, fmt.Errorf("the method %s of %v is %v; a tool is func(context.Context, In) (Out, error), where In and Out may be missing", name, receiver.Type(), t)
	}
	in, out := nothingType, nothingType
	if takes {
		in = t.In(1)
	}
	if gives {
		out = t.Out(0)
	}
	def := Definition{Name: m.Name, Description: m.Description}
	return newTyped(def, in, out, &m.Options, func(ctx context.Context, take func(any) *Failure) (Output, error) {
		argument, result := reflect.New(in), reflect.New(out)
		if failure := take(argument.Interface()); failure != nil {
			return Output{}, failure
		}
		given := []reflect.Value{reflect.ValueOf(ctx)}
		if takes {
			given = append(given, argument.Elem())
		}
		results := method.Call(given)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			return Output{}, err
		}
		if gives {
			result.Elem().Set(results[0])
		}
		return outputOf(result.Elem().Interface(), result.Interface())
	})
}

// noMethod explains why a type has no method with that name, and suggests another
// one.
func noMethod(t reflect.Type, name string) error {
	if t.Kind() != reflect.Pointer {
		if _, ok := reflect.PointerTo(t).MethodByName(name); ok {
			return fmt.Errorf("the method %s is one of *%v, not of %v; give a pointer", name, t, t)
		}
	}
	var known []string
	for m := range t.Methods() {
		known = append(known, m.Name)
	}
	text := fmt.Sprintf("%v has no exported method %q", t, name)
	if meant := suggest.Name(name, known); meant != "" {
		return fmt.Errorf("%s; did you mean %s?", text, meant)
	}
	if len(known) == 0 {
		return errors.New(text + ", nor any other")
	}
	return fmt.Errorf("%s; it has %s", text, listed(known, ", "))
}

// snakeCase converts a Go name to lower case with underscores. Acronyms stay
// together, also in the plural: GetHTTPHeader, UserIDs.
func snakeCase(name string) string {
	runes := []rune(name)
	isUpper := func(i int) bool { return i < len(runes) && unicode.IsUpper(runes[i]) }
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && isUpper(i) && runes[i-1] != '_' {
			next := i + 1
			plural := next < len(runes) && runes[next] == 's' && (next+1 == len(runes) || isUpper(next+1))
			begins := next < len(runes) && unicode.IsLower(runes[next]) && !plural
			if !isUpper(i-1) || begins {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
