// SPDX-License-Identifier: Apache-2.0

// Package settings turns the settings of a server into a text, so that approvals can be
// bound to them.
package settings

import (
	"encoding/json"
	"reflect"
)

// Text returns a text that differs for different settings: a pointer to a struct, whose
// embedded structs do not count. It has the secrets among them. Place is where the server
// is started, which is part of the text too, because the same command may work on other
// files elsewhere.
func Text(server any, place string) string {
	text, err := json.Marshal([]any{place, plain(reflect.ValueOf(server))})
	if err != nil {
		return err.Error() // cannot happen: plain returns what has a JSON form
	}
	return string(text)
}

// plain returns a value in a form whose JSON has all of it, with sorted keys.
func plain(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	if secret, ok := v.Interface().(interface{ Reveal() string }); ok {
		return secret.Reveal()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && !field.Anonymous {
				fields[field.Name] = plain(v.Field(i))
			}
		}
		return fields
	case reflect.Map:
		members := map[string]any{}
		for _, key := range v.MapKeys() {
			members[key.String()] = plain(v.MapIndex(key))
		}
		return members
	case reflect.Slice, reflect.Array:
		elements := make([]any, v.Len())
		for i := range elements {
			elements[i] = plain(v.Index(i))
		}
		return elements
	case reflect.Func, reflect.Chan:
		return nil
	default:
		return v.Interface()
	}
}
