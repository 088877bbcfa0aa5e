// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/internal/suggest"
)

// hiddenText is how values are printed that can be secrets.
var hiddenText = values.Hidden("").String()

// ValueOf returns an expanded text as a Value that is printed as shown.
func ValueOf(e expand.Expansion, shown string) values.Value {
	variables := make(map[string]string, len(e.Variables))
	for _, v := range e.Variables {
		variables[v.Name] = v.Text
	}
	return values.New(e.Text, shown, variables)
}

// Text is a string without variables. It must not be empty.
func Text[S ~string](to *S) Kind {
	return Kind{Name: "a string", Read: func(r *Reader, n *document.Node) {
		s, ok := n.Value.(string)
		switch {
		case !ok:
			r.WrongKind(n, "a string")
		case s == "":
			r.Wrong(n, "expected a string that is not empty")
		default:
			*to = S(s)
		}
	}}
}

// Choice is one of a few strings.
func Choice[S ~string](to *S, choices ...S) Kind {
	all := make([]Word[S], len(choices))
	for i, c := range choices {
		all[i] = Word[S]{string(c), c}
	}
	return WordFor(to, all...)
}

// Word is a string in the file, and the value that it stands for.
type Word[T any] struct {
	text  string
	means T
}

// Means returns a word.
func Means[T any](text string, value T) Word[T] { return Word[T]{text, value} }

// WordFor is one of a few strings that stand for values.
func WordFor[T any](to *T, words ...Word[T]) Kind {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.text
	}
	kind := plaintext.OneOf(names)
	return Kind{Name: kind, Read: func(r *Reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		for _, w := range words {
			if s == w.text {
				*to = w.means
				return
			}
		}
		r.Wrong(n, "expected %s", kind).Nearest = suggest.Key(s, names)
	}}
}

// Expanded is a string whose variables are replaced. The result must not be empty. It is
// printed as written in the file.
func Expanded(to *values.Value) Kind {
	return Kind{Name: "a string with variables", Read: func(r *Reader, n *document.Node) {
		if e, ok := r.Replace(n); ok && r.Filled(n, e) {
			*to = ValueOf(e, e.Shown)
		}
	}}
}

// Argument is an expanded string that may be empty.
func Argument(to *values.Value) Kind {
	return Kind{Name: "a string with variables", Read: func(r *Reader, n *document.Node) {
		if e, ok := r.Replace(n); ok {
			*to = ValueOf(e, e.Shown)
		}
	}}
}

// Secret is a string whose variables are replaced. It is never printed.
func Secret(to *values.Value) Kind {
	return Kind{Name: "a string with variables", Read: func(r *Reader, n *document.Node) {
		if e, ok := r.Replace(n); ok && r.Filled(n, e) {
			*to = ValueOf(e, hiddenText)
		}
	}}
}

// Filled reports whether e is not empty, and adds a problem if it is.
func (r *Reader) Filled(n *document.Node, e expand.Expansion) bool {
	switch {
	case e.Text != "":
		return true
	case e.Used:
		r.Wrong(n, "expected a string that is not empty, but the variable is: set it")
	default:
		r.Wrong(n, "expected a string that is not empty")
	}
	return false
}

// Address is the URL of an HTTP server.
func Address(to *values.Value) Kind {
	return Kind{Name: "a URL", Read: func(r *Reader, n *document.Node) {
		e, ok := r.Replace(n)
		if !ok {
			return
		}
		u, err := url.Parse(e.Text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			r.Wrong(n, "expected a URL that begins with http:// or https:// and names a host")
			return
		}
		*to = ValueOf(e, plaintext.WithoutCredentials(e.Shown, hiddenText))
	}}
}

// Duration is a positive duration.
func Duration(to *time.Duration) Kind {
	const kind = `a duration such as "30s"`
	return Kind{Name: "a duration", Read: func(r *Reader, n *document.Node) {
		s, ok := n.Value.(string)
		if _, isInteger := n.Value.(int64); isInteger {
			r.Wrong(n, "expected %s, found an integer: write it in quotes and with its unit", kind)
			return
		}
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			r.Wrong(n, `expected %s, "1m30s" or "500ms"`, kind)
			return
		}
		if d <= 0 {
			r.Wrong(n, "expected a duration longer than 0")
			return
		}
		*to = d
	}}
}

// Integer is an integer of at least least.
func Integer[I int | int64](to *I, least int64) Kind {
	return Kind{Name: "an integer", Read: func(r *Reader, n *document.Node) {
		i, ok := n.Value.(int64)
		switch {
		case !ok:
			r.WrongKind(n, "an integer")
		case i < least:
			r.Wrong(n, "expected an integer of at least %d", least)
		case int64(I(i)) != i:
			r.Wrong(n, "expected a smaller integer")
		default:
			*to = I(i)
		}
	}}
}

// CountOrNone is an integer of at least 0. In the options of the packages 0 means the
// default, and a negative number none, so 0 in the file is stored as -1.
func CountOrNone(to *int) Kind {
	v := Integer(to, 0)
	return Kind{Name: v.Name, Read: func(r *Reader, n *document.Node) {
		if v.Read(r, n); n.Value == int64(0) {
			*to = -1
		}
	}}
}

// Size is a number of bytes, at least 1.
func Size(to *int64) Kind {
	const kind = `a size such as "512MiB"`
	return Kind{Name: "a size", Read: func(r *Reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			if _, ok = n.Value.(int64); ok {
				Integer(to, 1).Read(r, n)
			} else {
				r.WrongKind(n, kind)
			}
			return
		}
		bytes, err := plaintext.Size(s)
		switch {
		case errors.Is(err, strconv.ErrRange):
			r.Wrong(n, "expected a smaller size")
		case err != nil:
			r.Wrong(n, `expected %s, "2GiB" or "1GB", or an integer of bytes`, kind)
		case bytes <= 0:
			r.Wrong(n, "expected a size of at least 1 byte")
		default:
			*to = bytes
		}
	}}
}

// Number is a float or an integer from least to most.
func Number(to *float64, least, most float64) Kind {
	kind := fmt.Sprintf("a number of at least %g", least)
	if !math.IsInf(most, 1) {
		kind = fmt.Sprintf("a number from %g to %g", least, most)
	}
	return Kind{Name: "a number", Read: func(r *Reader, n *document.Node) {
		var f float64
		switch v := n.Value.(type) {
		case int64:
			f = float64(v)
		case float64:
			f = v
		default:
			r.WrongKind(n, kind)
			return
		}
		if !(f >= least && f <= most) || math.IsInf(f, 0) {
			r.Wrong(n, "expected %s", kind)
			return
		}
		*to = f
	}}
}

// Boolean is true or false.
func Boolean(to *bool) Kind {
	return Kind{Name: "a boolean", Read: func(r *Reader, n *document.Node) {
		b, ok := n.Value.(bool)
		if !ok {
			r.WrongKind(n, "true or false")
			return
		}
		*to = b
	}}
}

// Not is true or false, stored inverted.
func Not(to *bool) Kind {
	return Kind{Name: "a boolean", Read: func(r *Reader, n *document.Node) {
		on := !*to
		Boolean(&on).Read(r, n)
		*to = !on
	}}
}

// Optional is a value whose absence has a meaning.
func Optional[T any](to **T, of func(*T) Kind) Kind {
	v := new(T)
	inner := of(v)
	return Kind{Name: inner.Name, Fields: inner.Fields, Within: inner.Within, Read: func(r *Reader, n *document.Node) {
		inner.Read(r, n)
		*to = v
	}}
}

// Each is a list of values.
func Each[T any](to *[]T, of func(*T) Kind) Kind {
	element := of(new(T))
	kind := "a list of " + plaintext.Plural(element.Name)
	return Kind{Name: kind, Fields: element.Fields, Within: "[]", Read: func(r *Reader, n *document.Node) {
		elements, ok := n.Value.(document.List)
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		*to = make([]T, len(elements))
		for i, element := range elements {
			of(&(*to)[i]).Read(r, element)
		}
	}}
}

// ByName is a table of values under names that the user chooses. check returns an error
// message about a name, or "".
func ByName[T any](to *map[string]T, of func(*T) Kind, check func(name string) string) Kind {
	element := of(new(T))
	kind := "a table of " + plaintext.Plural(element.Name)
	return Kind{Name: kind, Fields: element.Fields, Within: ".NAME", Read: func(r *Reader, n *document.Node) {
		t, ok := n.Value.(*document.Table)
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		*to = make(map[string]T, len(t.Members))
		for _, member := range t.Members {
			if fault := check(member.Key); fault != "" {
				r.WrongKey(member, "%s", fault)
			}
			v := new(T)
			of(v).Read(r, member)
			(*to)[member.Key] = *v
		}
	}}
}

// Free is a free-form table whose content is not interpreted here. Variables in its
// strings are replaced.
func Free(to *values.Table) Kind {
	return Kind{Name: "a free table", Read: func(r *Reader, n *document.Node) {
		if _, ok := n.Value.(*document.Table); !ok {
			r.WrongKind(n, "a table")
			return
		}
		variables := map[string]string{}
		content, _ := n.Free(func(leaf *document.Node) any {
			if f, ok := leaf.Value.(float64); ok {
				if math.IsNaN(f) || math.IsInf(f, 0) {
					r.Wrong(leaf, "expected a finite number")
				}
				return f
			}
			e, _ := r.Replace(leaf)
			for _, v := range e.Variables {
				variables[v.Name] = v.Text
			}
			return e.Text
		}).(map[string]any)
		*to = values.NewTable(content, variables)
	}}
}

// Table is a table with the given fields. check validates the table as a whole; it may
// be nil.
func Table(fields []Field, check func(r *Reader, n *document.Node)) Kind {
	return Kind{Name: "a table", Fields: fields, Read: func(r *Reader, n *document.Node) {
		r.Table(n, fields)
		if _, ok := n.Value.(*document.Table); ok && check != nil {
			check(r, n)
		}
	}}
}

// HeaderValue is a secret that is valid in an HTTP header.
func HeaderValue(to *values.Value) Kind {
	v := Secret(to)
	return Kind{Name: v.Name, Read: func(r *Reader, n *document.Node) {
		v.Read(r, n)
		if strings.ContainsFunc(to.Reveal(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.Wrong(n, "expected a value for an HTTP header, which holds no line breaks or other control characters")
		}
	}}
}

// VariableName is the name of an environment variable, as in ${NAME}.
func VariableName(to *string) Kind {
	return Kind{Name: "a string", Read: func(r *Reader, n *document.Node) {
		Text(to).Read(r, n)
		if *to != "" && !expand.IsName(*to) {
			r.Wrong(n, "expected the name of an environment variable: letters, digits and _")
		}
	}}
}

// ProtocolVersion is a version of MCP, which is a date.
func ProtocolVersion(to *string) Kind {
	const kind = `a protocol version such as "2025-11-25", in quotes`
	return Kind{Name: "a protocol version", Read: func(r *Reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			r.Wrong(n, "expected %s", kind)
			return
		}
		*to = s
	}}
}

// VariableValue is a secret that may be empty.
func VariableValue(to *values.Value) Kind {
	return Kind{Name: "a string with variables", Read: func(r *Reader, n *document.Node) {
		if e, ok := r.Replace(n); ok {
			*to = ValueOf(e, hiddenText)
		}
	}}
}

// Path is a path. Relative paths start at the directory of the file.
func Path(to *values.Value) Kind {
	return Kind{Name: "a path", Read: func(r *Reader, n *document.Node) {
		e, ok := r.Replace(n)
		if !ok || !r.Filled(n, e) {
			return
		}
		if !filepath.IsAbs(e.Text) {
			e.Text = filepath.Join(r.Source.Of(n).Folder(), e.Text)
		}
		*to = ValueOf(e, e.Shown)
	}}
}

// LenientIf returns v for a table that allows unset variables if its member key has the
// value off, because the table is not used then.
func (v Kind) LenientIf(key string, off bool) Kind {
	read := v.Read
	v.Read = func(r *Reader, n *document.Node) {
		if m := n.Member(key); m != nil && m.Value == off {
			r.Lenient = true
			defer func() { r.Lenient = false }()
		}
		read(r, n)
	}
	return v
}
