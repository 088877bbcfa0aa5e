// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/invoker"
)

// Trusted is a fact that tools may know and a model may neither see nor choose, such as
// the identity of the user. Printing it never shows the value.
type Trusted struct {
	// Value is the text. It must not be empty.
	Value Value
	// JSON means that the text is JSON, such as 42 or {"id": 42}; otherwise it is a
	// string.
	JSON bool
	// Secret is for tokens and the like: no setting can make the audit trail record it,
	// and it is redacted from the output of tools.
	Secret bool
}

// value converts t to an [invoker.Value].
func (t Trusted) value(name string) (invoker.Value, error) {
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

// trustedValues returns the values of a table, sorted by name. path is the path of the
// table, for errors.
func trustedValues(path string, table map[string]Trusted) ([]invoker.Value, error) {
	var values []invoker.Value
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value, err := table[name].value(name)
		if err != nil {
			errs = append(errs, about(path+"."+plaintext.ShowKey(name), err))
			continue
		}
		values = append(values, value)
	}
	return values, errors.Join(errs...)
}

// trusted is a trusted value itself, or a table with more settings.
func trusted(to *Trusted) value {
	fields := []field{
		{"value", scalar(to)},
		{"json", boolean(&to.JSON)},
		{"secret", boolean(&to.Secret)},
	}
	inTable := tableOf(fields, to.check)
	return value{kind: "a trusted value", fields: fields, read: func(r *reader, n *document.Node) {
		if _, ok := n.Value.(*document.Table); ok {
			inTable.read(r, n)
			return
		}
		scalar(to).read(r, n)
	}}
}

// scalar is the trusted value itself.
func scalar(to *Trusted) value {
	const kind = "a string with variables, an integer or a boolean"
	return value{kind: kind, read: func(r *reader, n *document.Node) {
		switch v := n.Value.(type) {
		case string:
			secret(&to.Value).read(r, n)
		case int64:
			to.JSON, to.Value = true, Value{hiddenText, keep(held{text: strconv.FormatInt(v, 10)})}
		case bool:
			to.JSON, to.Value = true, Value{hiddenText, keep(held{text: strconv.FormatBool(v)})}
		default:
			r.wrongKind(n, kind)
		}
	}}
}

// check validates the table as a whole.
func (t *Trusted) check(r *reader, n *document.Node) {
	v, asJSON := n.Member("value"), n.Member("json")
	if v == nil {
		r.missing(n, "value", `missing: expected the value, such as value = "env:USER_ID"`)
		return
	}
	if asJSON == nil {
		return
	}
	if _, ok := v.Value.(string); !ok {
		t.JSON = true
		r.wrongKey(asJSON, "only for a value that is a string")
	} else if t.JSON && t.Value.held != nil && !json.Valid([]byte(t.Value.Reveal())) {
		r.wrong(v, "expected JSON, such as 42")
	}
}

// trustedTable is a table of trusted values.
func trustedTable(to *map[string]Trusted) value { return byName(to, trusted, plaintext.TrustedName) }

// passing checks a server's trusted values against the rest of its table.
func (s *Server) passing(r *reader, n *document.Node) {
	all := n.Member("trusted")
	if all == nil || all.Member("headers") == nil {
		return
	}
	headers := all.Member("headers")
	if s.Transport == Stdio {
		r.wrongKey(headers, "not for a server with transport = %q; its tools receive a trusted value through arguments", Stdio)
	}
	fixed := map[string]bool{}
	for name := range s.Headers {
		fixed[http.CanonicalHeaderKey(name)] = true
	}
	for _, member := range headers.Members() {
		if fixed[http.CanonicalHeaderKey(member.Key)] {
			r.wrongKey(member, "this header is set in headers already")
		}
	}
}
