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

// Trusted names a fact of type T that a program knows, and that a model must
// neither see nor choose: who the user is, the tenant, a credential. The
// program attaches the fact to a conversation, or to the request that it
// serves, and a tool reads it from the context of its call:
//
//	var User = invoker.NewTrusted[int64]("user_id")
//
//	ctx = invoker.WithTrusted(ctx, User.Is(42))
//	user, ok := User.From(ctx)
//
// A tool that lists it under Options.Needs runs only where it is there.
// Trusted values are equal if their names are. They may be used concurrently.
type Trusted[T any] struct {
	name   string
	secret bool
}

// NewTrusted returns the trusted value of a name, which is also the name of the
// argument that no caller may send to a tool that needs the value. It panics if
// the name is empty.
func NewTrusted[T any](name string) Trusted[T] {
	if name == "" {
		panic("invoker: a trusted value needs a name")
	}
	return Trusted[T]{name: name}
}

// Secret returns the same trusted value for facts that may be written nowhere,
// such as tokens: no policy can have them recorded, and conversations take them
// out of what tools say.
func (t Trusted[T]) Secret() Trusted[T] { return Trusted[T]{t.name, true} }

// Name returns the name.
func (t Trusted[T]) Name() string { return t.name }

// Is returns the value to attach with [WithTrusted].
func (t Trusted[T]) Is(value T) Value {
	var held any = value
	return Value{t.name, &held, t.secret}
}

// From returns the value that ctx carries under the name. It is false if there
// is none, or one of another type. A value of [TrustedJSON] is decoded.
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

// Need is a trusted value that a tool cannot do without: a [Trusted].
type Need interface {
	// Name returns the name of the value.
	Name() string

	isIn(ctx context.Context) bool
}

// Value is a trusted value with its name. However it is printed, logged or
// encoded, what it holds does not show; Reveal is the one way to it.
type Value struct {
	name   string
	value  *any // package fmt prints what is in unexported fields, but follows no pointers there
	secret bool
}

// TrustedJSON returns a value that is known as JSON, such as one of a
// configuration or a claim of a token. JSON's null says that there is none, see
// [WithTrusted]. It panics if the name is empty or the text is no JSON.
func TrustedJSON(name string, text json.RawMessage) Value {
	if name == "" || !json.Valid(text) {
		panic("invoker: a trusted value needs a name and valid JSON")
	}
	var held any = slices.Clone(text)
	return Value{name: name, value: &held}
}

// Name returns the name.
func (v Value) Name() string { return v.name }

// Secret returns the value marked as [Trusted.Secret] marks it.
func (v Value) Secret() Value { return Value{v.name, v.value, true} }

// IsSecret reports whether the value may be written nowhere.
func (v Value) IsSecret() bool { return v.secret }

// Reveal returns the value as JSON, for whoever has to pass it on. The error
// says that the value has no JSON form.
func (v Value) Reveal() (json.RawMessage, error) {
	if v.value == nil {
		return nil, errors.New("there is no trusted value")
	}
	if text, ok := (*v.value).(json.RawMessage); ok {
		return slices.Clone(text), nil
	}
	if s := reflect.ValueOf(*v.value); s.Kind() == reflect.String && !utf8.ValidString(s.String()) {
		return nil, fmt.Errorf("the trusted value %q is not UTF-8, so that JSON would make it another", v.name)
	}
	var text []byte
	var err error
	if panicked := contain.Call("MarshalJSON", func() { text, err = json.Marshal(*v.value) }); panicked != nil || err != nil {
		return nil, fmt.Errorf("the trusted value %q (%T) has no JSON form", v.name, *v.value)
	}
	return text, nil
}

// isNothing reports whether there is no value, or one that says so.
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

// String returns the name and not the value.
func (v Value) String() string { return v.name + "=[trusted]" }

// Format writes what String returns, whatever the verb.
func (v Value) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, v.String()) }

// MarshalJSON returns what String returns, as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

type trustedKey struct{}

// WithTrusted returns a context that carries the values beside those that ctx
// carries already. Of two with one name the later counts. One that is a nil
// pointer, or null in JSON, takes away what was there: nobody is user null.
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
	values := make([]Value, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[name])
	}
	return values
}

// TrustedValue returns the trusted value that ctx carries under a name.
func TrustedValue(ctx context.Context, name string) (Value, bool) {
	all, _ := ctx.Value(trustedKey{}).(map[string]Value)
	v, ok := all[name]
	return v, ok
}
