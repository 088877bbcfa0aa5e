// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestIsShort makes each text of each plain canister long, one at a time.
func TestIsShort(t *testing.T) {
	long := strings.Repeat("x", MaxLine/8)
	for _, c := range []Canister{User{}, Assistant{}, Supervisor{}, Document{}, Invocation{}, Result{}, Intent{}} {
		if !isPlain(c) || !isShort(c) {
			t.Errorf("an empty %T is not plain and short", c)
		}
		kind := reflect.TypeOf(c)
		for _, field := range reflect.VisibleFields(kind) {
			value := reflect.New(kind).Elem()
			switch at := value.FieldByIndex(field.Index); {
			case field.Type.Kind() == reflect.String:
				at.SetString(long)
			case field.Name == "Content":
				at.Set(reflect.ValueOf([]Content{Text("x"), Text(long)}))
			case field.Name == "Metadata":
				at.Set(reflect.ValueOf(Fields{"x": json.RawMessage(long)}))
			default:
				continue
			}
			if isShort(value.Interface().(Canister)) {
				t.Errorf("a %T with a long %s is called short", c, field.Name)
			}
		}
	}
	for _, extra := range []Extra{{Metadata: Fields{"x": json.RawMessage(long)}}, {Metadata: Fields{long: json.RawMessage("1")}}} {
		if isShort(User{Content: []Content{TextContent{Extra: extra}}}) {
			t.Error("a text with long metadata is called short")
		}
	}
	if isShort(User{Content: slices.Repeat([]Content{Text("")}, MaxLine/8/perEntry)}) {
		t.Error("a canister with very many texts is called short")
	}
}
