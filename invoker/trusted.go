// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/contain"
)

// Trusted names a fact of type T that a program knows and that a model must
// neither see nor choose: the user, the tenant, a credential. The program
// attaches the fact to a conversation, or to the request that it serves, and a
// tool reads it from the context of its call:
//
//	var User = invoker.NewTrusted[int64]("user_id")
//
//	ctx = invoker.WithTrusted(ctx, User.Value(42))
//	user, ok := User.From(ctx)
//
// A tool that lists it in Options.Needs runs only if it is present. Two Trusted
// with the same name refer to the same value. They may be used concurrently.
type Trusted[T any] struct {
	name   string
	secret bool
}

// NewTrusted returns the name of a trusted value. Callers may not send an
// argument with the same name to a tool that needs the value. NewTrusted panics
// if the name is empty.
func NewTrusted[T any](name string) Trusted[T] {
	if name == "" {
		panic("invoker: a trusted value needs a name")
	}
	return Trusted[T]{name: name}
}

// Secret returns the same trusted value, marked for facts that must not be
// recorded, such as tokens: no option of an audit trail records them, and conversations
// remove them from the output of tools.
func (t Trusted[T]) Secret() Trusted[T] { return Trusted[T]{t.name, true} }

// Name returns the name of the value.
func (t Trusted[T]) Name() string { return t.name }

// Value returns the value to attach with [WithTrusted].
func (t Trusted[T]) Value(value T) Value {
	var held any = value
	return Value{t.name, &held, t.secret}
}

// From returns the value with this name that ctx carries. It returns false if the
// value is missing or has a different type. A value of [TrustedJSON] is decoded.
func (t Trusted[T]) From(ctx context.Context) (T, bool) {
	value, ok := TrustedValue(ctx, t.name)
	if !ok {
		var none T
		return none, false
	}
	if typed, ok := (*value.value).(T); ok {
		return typed, true
	}
	var decoded, none T
	text, ok := (*value.value).(json.RawMessage)
	if !ok {
		return none, false
	}
	var err error
	panicked := contain.Call("UnmarshalJSON", func() { err = json.Unmarshal(text, &decoded) })
	if panicked != nil || err != nil {
		return none, false
	}
	return decoded, true
}

func (t Trusted[T]) isIn(ctx context.Context) bool {
	_, ok := t.From(ctx)
	return ok
}

// Need is a trusted value that a tool requires: a [Trusted].
type Need interface {
	// Name returns the name of the value.
	Name() string

	isIn(ctx context.Context) bool
}

// Value is a trusted value with its name. Its content is hidden when it is
// printed, logged or encoded; only Reveal and [Trusted.From] return it.
type Value struct {
	name   string
	value  *any // package fmt prints unexported fields but follows no pointers in them
	secret bool
}

// TrustedJSON returns a value that is given as JSON, such as one from a
// configuration or the claim of a token. JSON null means that the value is
// absent; see [WithTrusted]. TrustedJSON panics if the name is empty or the text
// is not valid JSON.
func TrustedJSON(name string, text json.RawMessage) Value {
	if name == "" || !json.Valid(text) {
		panic("invoker: a trusted value needs a name and valid JSON")
	}
	var held any = slices.Clone(text)
	return Value{name: name, value: &held}
}

// Name returns the name of the value.
func (v Value) Name() string { return v.name }

// Secret returns the value marked as by [Trusted.Secret].
func (v Value) Secret() Value { return Value{v.name, v.value, true} }

// IsSecret reports whether the value must not be recorded.
func (v Value) IsSecret() bool { return v.secret }

// Reveal returns the value as JSON, for code that has to pass it on. It returns
// an error if the value has no JSON form.
func (v Value) Reveal() (json.RawMessage, error) {
	if v.value == nil {
		return nil, errors.New("the trusted value is not set")
	}
	if text, ok := (*v.value).(json.RawMessage); ok {
		return slices.Clone(text), nil
	}
	if s := reflect.ValueOf(*v.value); s.Kind() == reflect.String && !utf8.ValidString(s.String()) {
		return nil, fmt.Errorf("the trusted value %q is not UTF-8, so JSON would change it", v.name)
	}
	var text []byte
	var err error
	if panicked := contain.Call("MarshalJSON", func() { text, err = json.Marshal(*v.value) }); panicked != nil || err != nil {
		return nil, fmt.Errorf("the trusted value %q (%T) has no JSON form", v.name, *v.value)
	}
	return text, nil
}

// isNothing reports whether the value is absent, nil or null.
func (v Value) isNothing() bool {
	if v.value == nil || *v.value == nil {
		return true
	}
	if p := reflect.ValueOf(*v.value); p.Kind() == reflect.Pointer && p.IsNil() {
		return true
	}
	text, ok := (*v.value).(json.RawMessage)
	return ok && isNull(text)
}

// String returns the name without the value.
func (v Value) String() string { return v.name + "=[trusted]" }

// Format writes the result of String for every verb.
func (v Value) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, v.String()) }

// MarshalJSON returns the result of String as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

type trustedKey struct{}

// WithTrusted returns a context that carries values in addition to those in ctx.
// For values with the same name, the last one counts. A value that is nil, a nil
// pointer, or the JSON text null ([TrustedJSON]) removes an earlier one, because an
// absent value does not identify anyone. A nil slice or map does not.
func WithTrusted(ctx context.Context, values ...Value) context.Context {
	if len(values) == 0 {
		return ctx
	}
	before, _ := ctx.Value(trustedKey{}).(map[string]Value)
	all := maps.Clone(before)
	if all == nil {
		all = make(map[string]Value, len(values))
	}
	for _, v := range values {
		if v.isNothing() {
			delete(all, v.name)
			continue
		}
		all[v.name] = v
	}
	return context.WithValue(ctx, trustedKey{}, all)
}

// TrustedFrom returns the trusted values that ctx carries, sorted by name.
func TrustedFrom(ctx context.Context) []Value {
	all, _ := ctx.Value(trustedKey{}).(map[string]Value)
	if len(all) == 0 {
		return nil
	}
	values := make([]Value, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[name])
	}
	return values
}

// TrustedValue returns the trusted value with this name that ctx carries.
func TrustedValue(ctx context.Context, name string) (Value, bool) {
	all, _ := ctx.Value(trustedKey{}).(map[string]Value)
	v, ok := all[name]
	return v, ok
}
