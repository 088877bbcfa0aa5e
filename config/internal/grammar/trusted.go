// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/invoker"
)

// trustedValue converts t to an [invoker.Value].
func trustedValue(name string, t values.Trusted) (invoker.Value, error) {
	text := json.RawMessage(t.Value.Reveal())
	switch {
	case name == "":
		return invoker.Value{}, errors.New("the name is empty")
	case len(text) == 0:
		return invoker.Value{}, errors.New("the value is empty")
	case !t.JSON:
		text, _ = json.Marshal(string(text)) // strings can always be encoded
	case !json.Valid(text):
		return invoker.Value{}, errors.New("the value is not JSON")
	}
	value := invoker.TrustedJSON(name, text)
	if t.Secret {
		value = value.Secret()
	}
	return value, nil
}

// TrustedValues returns the values of a table, sorted by name. The caller may append to the
// slice. path is the path of the table, for errors.
func TrustedValues(path string, table map[string]values.Trusted) ([]invoker.Value, error) {
	var values []invoker.Value
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value, err := trustedValue(name, table[name])
		if err != nil {
			errs = append(errs, About(path+"."+plaintext.ShowKey(name), err))
			continue
		}
		values = append(values, value)
	}
	return slices.Clip(values), errors.Join(errs...)
}

// trusted is a trusted value itself, or a table with more settings.
func trusted(to *values.Trusted) Kind {
	fields := []Field{
		{"value", scalar(to)},
		{"json", Boolean(&to.JSON)},
		{"secret", Boolean(&to.Secret)},
	}
	inTable := Table(fields, func(r *Reader, n *document.Node) { checkTrusted(to, r, n) })
	return Kind{Name: "a trusted value", Fields: fields, Read: func(r *Reader, n *document.Node) {
		if _, ok := n.Value.(*document.Table); ok {
			inTable.Read(r, n)
			return
		}
		scalar(to).Read(r, n)
	}}
}

// scalar is the trusted value itself.
func scalar(to *values.Trusted) Kind {
	const kind = "a string with variables, an integer or a boolean"
	return Kind{Name: kind, Read: func(r *Reader, n *document.Node) {
		switch v := n.Value.(type) {
		case string:
			Secret(&to.Value).Read(r, n)
		case int64:
			to.JSON, to.Value = true, values.New(strconv.FormatInt(v, 10), hiddenText, nil)
		case bool:
			to.JSON, to.Value = true, values.New(strconv.FormatBool(v), hiddenText, nil)
		case document.List:
			r.Wrong(n, `expected %s, found %s: write it as JSON, such as {value = '["a", "b"]', json = true}`, kind, n.Kind())
		default:
			r.WrongKind(n, kind)
		}
	}}
}

// checkTrusted validates the table as a whole.
func checkTrusted(t *values.Trusted, r *Reader, n *document.Node) {
	v, asJSON := n.Member("value"), n.Member("json")
	if v == nil {
		r.Missing(n, "value", `missing: expected the value, such as value = "env:USER_ID"`)
		return
	}
	if asJSON == nil {
		return
	}
	if _, ok := v.Value.(string); !ok {
		t.JSON = true
		r.WrongKey(asJSON, "only for a value that is a string")
	} else if t.JSON && t.Value != (values.Value{}) && !json.Valid([]byte(t.Value.Reveal())) {
		r.Wrong(v, "expected JSON, such as 42")
	}
}

// TrustedTable is a table of trusted values.
func TrustedTable(to *map[string]values.Trusted) Kind {
	return ByName(to, trusted, plaintext.TrustedName)
}
