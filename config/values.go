// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/internal/suggest"
)

// text is a string without variables. It must not be empty.
func text[S ~string](to *S) value {
	return value{kind: "a string", read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		switch {
		case !ok:
			r.wrongKind(n, "a string")
		case s == "":
			r.wrong(n, "expected a string that is not empty")
		default:
			*to = S(s)
		}
	}}
}

// choice is one of a few strings.
func choice[S ~string](to *S, choices ...S) value {
	all := make([]word[S], len(choices))
	for i, c := range choices {
		all[i] = word[S]{string(c), c}
	}
	return wordFor(to, all...)
}

// word is a string in the file, and the value that it stands for.
type word[T any] struct {
	text  string
	means T
}

// wordFor is one of a few strings that stand for values.
func wordFor[T any](to *T, words ...word[T]) value {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.text
	}
	kind := plaintext.OneOf(names)
	return value{kind: kind, read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		for _, w := range words {
			if s == w.text {
				*to = w.means
				return
			}
		}
		r.wrong(n, "expected %s", kind).Nearest = suggest.Key(s, names)
	}}
}

// expanded is a string whose variables are replaced. The result must not be empty. It is
// printed as written in the file.
func expanded(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *document.Node) {
		if e, ok := r.replace(n); ok && r.filled(n, e) {
			*to = valueOf(e, e.Shown)
		}
	}}
}

// argument is an expanded string that may be empty.
func argument(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *document.Node) {
		if e, ok := r.replace(n); ok {
			*to = valueOf(e, e.Shown)
		}
	}}
}

// secret is a string whose variables are replaced. It is never printed.
func secret(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *document.Node) {
		if e, ok := r.replace(n); ok && r.filled(n, e) {
			*to = valueOf(e, hiddenText)
		}
	}}
}

// filled reports whether e is not empty, and adds a problem if it is.
func (r *reader) filled(n *document.Node, e expand.Expansion) bool {
	switch {
	case e.Text != "":
		return true
	case e.Used:
		r.wrong(n, "expected a string that is not empty, but the variable is: set it")
	default:
		r.wrong(n, "expected a string that is not empty")
	}
	return false
}

// address is the URL of an HTTP server.
func address(to *Value) value {
	return value{kind: "a URL", read: func(r *reader, n *document.Node) {
		e, ok := r.replace(n)
		if !ok {
			return
		}
		u, err := url.Parse(e.Text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			r.wrong(n, "expected a URL that begins with http:// or https:// and names a host")
			return
		}
		*to = valueOf(e, plaintext.WithoutCredentials(e.Shown, hiddenText))
	}}
}

// duration is a positive duration.
func duration(to *time.Duration) value {
	const kind = `a duration such as "30s"`
	return value{kind: "a duration", read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		if _, isInteger := n.Value.(int64); isInteger {
			r.wrong(n, "expected %s, found an integer: write it in quotes and with its unit", kind)
			return
		}
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			r.wrong(n, `expected %s, "1m30s" or "500ms"`, kind)
			return
		}
		if d <= 0 {
			r.wrong(n, "expected a duration longer than 0")
			return
		}
		*to = d
	}}
}

// integer is an integer of at least least.
func integer[I int | int64](to *I, least int64) value {
	return value{kind: "an integer", read: func(r *reader, n *document.Node) {
		i, ok := n.Value.(int64)
		switch {
		case !ok:
			r.wrongKind(n, "an integer")
		case i < least:
			r.wrong(n, "expected an integer of at least %d", least)
		case int64(I(i)) != i:
			r.wrong(n, "expected a smaller integer")
		default:
			*to = I(i)
		}
	}}
}

// countOrNone is an integer of at least 0. In the options of the packages 0 means the
// default, and a negative number none, so 0 in the file is stored as -1.
func countOrNone(to *int) value {
	v := integer(to, 0)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		if v.read(r, n); n.Value == int64(0) {
			*to = -1
		}
	}}
}

// size is a number of bytes, at least 1.
func size(to *int64) value {
	const kind = `a size such as "512MiB"`
	return value{kind: "a size", read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			if _, ok = n.Value.(int64); ok {
				integer(to, 1).read(r, n)
			} else {
				r.wrongKind(n, kind)
			}
			return
		}
		bytes, err := plaintext.Size(s)
		switch {
		case errors.Is(err, strconv.ErrRange):
			r.wrong(n, "expected a smaller size")
		case err != nil:
			r.wrong(n, `expected %s, "2GiB" or "1GB", or an integer of bytes`, kind)
		case bytes <= 0:
			r.wrong(n, "expected a size of at least 1 byte")
		default:
			*to = bytes
		}
	}}
}

// number is a float or an integer from least to most.
func number(to *float64, least, most float64) value {
	kind := fmt.Sprintf("a number of at least %g", least)
	if !math.IsInf(most, 1) {
		kind = fmt.Sprintf("a number from %g to %g", least, most)
	}
	return value{kind: "a number", read: func(r *reader, n *document.Node) {
		var f float64
		switch v := n.Value.(type) {
		case int64:
			f = float64(v)
		case float64:
			f = v
		default:
			r.wrongKind(n, kind)
			return
		}
		if !(f >= least && f <= most) || math.IsInf(f, 0) {
			r.wrong(n, "expected %s", kind)
			return
		}
		*to = f
	}}
}

// boolean is true or false.
func boolean(to *bool) value {
	return value{kind: "a boolean", read: func(r *reader, n *document.Node) {
		b, ok := n.Value.(bool)
		if !ok {
			r.wrongKind(n, "true or false")
			return
		}
		*to = b
	}}
}

// not is true or false, stored inverted.
func not(to *bool) value {
	return value{kind: "a boolean", read: func(r *reader, n *document.Node) {
		on := !*to
		boolean(&on).read(r, n)
		*to = !on
	}}
}

// optional is a value whose absence has a meaning.
func optional[T any](to **T, of func(*T) value) value {
	v := new(T)
	inner := of(v)
	return value{kind: inner.kind, fields: inner.fields, within: inner.within, read: func(r *reader, n *document.Node) {
		inner.read(r, n)
		*to = v
	}}
}

// each is a list of values.
func each[T any](to *[]T, of func(*T) value) value {
	element := of(new(T))
	kind := "a list of " + plaintext.Plural(element.kind)
	return value{kind: kind, fields: element.fields, within: "[]", read: func(r *reader, n *document.Node) {
		elements, ok := n.Value.(document.List)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		*to = make([]T, len(elements))
		for i, element := range elements {
			of(&(*to)[i]).read(r, element)
		}
	}}
}

// byName is a table of values under names that the user chooses. check returns an error
// message about a name, or "".
func byName[T any](to *map[string]T, of func(*T) value, check func(name string) string) value {
	element := of(new(T))
	kind := "a table of " + plaintext.Plural(element.kind)
	return value{kind: kind, fields: element.fields, within: ".NAME", read: func(r *reader, n *document.Node) {
		t, ok := n.Value.(*document.Table)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		*to = make(map[string]T, len(t.Members))
		for _, member := range t.Members {
			if fault := check(member.Key); fault != "" {
				r.wrongKey(member, "%s", fault)
			}
			v := new(T)
			of(v).read(r, member)
			(*to)[member.Key] = *v
		}
	}}
}

// free is a free-form table whose content is not interpreted here. Variables in its
// strings are replaced.
func free(to *Table) value {
	return value{kind: "a free table", read: func(r *reader, n *document.Node) {
		if _, ok := n.Value.(*document.Table); !ok {
			r.wrongKind(n, "a table")
			return
		}
		var variables []expand.Variable
		values, _ := n.Free(func(leaf *document.Node) any {
			if f, ok := leaf.Value.(float64); ok {
				if math.IsNaN(f) || math.IsInf(f, 0) {
					r.wrong(leaf, "expected a finite number")
				}
				return f
			}
			e, _ := r.replace(leaf)
			variables = append(variables, e.Variables...)
			return e.Text
		}).(map[string]any)
		if len(values) > 0 {
			*to = Table{held: keep(heldTable{values: values, variables: variables})}
		}
	}}
}

// tableOf is a table with the given fields. check validates the table as a whole; it may
// be nil.
func tableOf(fields []field, check func(r *reader, n *document.Node)) value {
	return value{kind: "a table", fields: fields, read: func(r *reader, n *document.Node) {
		r.table(n, fields)
		if _, ok := n.Value.(*document.Table); ok && check != nil {
			check(r, n)
		}
	}}
}

// headerValue is a secret that is valid in an HTTP header.
func headerValue(to *Value) value {
	v := secret(to)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		v.read(r, n)
		if strings.ContainsFunc(to.Reveal(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.wrong(n, "expected a value for an HTTP header, which holds no line breaks or other control characters")
		}
	}}
}

// environmentName is the name of an environment variable, as in ${NAME}.
func environmentName(to *string) value {
	return value{kind: "a string", read: func(r *reader, n *document.Node) {
		text(to).read(r, n)
		if *to != "" && !expand.IsName(*to) {
			r.wrong(n, "expected the name of an environment variable: letters, digits and _")
		}
	}}
}

// protocolVersion is a version of MCP, which is a date.
func protocolVersion(to *string) value {
	const kind = `a protocol version such as "2025-11-25", in quotes`
	return value{kind: "a protocol version", read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			r.wrong(n, "expected %s", kind)
			return
		}
		*to = s
	}}
}
