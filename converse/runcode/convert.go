// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/consort-go/consort/internal/jsontext"
)

// decodeText is json.decode(text).
func (m *meter) decodeText(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &text); err != nil {
		return nil, err
	}
	return m.decode(text)
}

// encodeText is json.encode(value).
func (m *meter) encodeText(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var value starlark.Value
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &value); err != nil {
		return nil, err
	}
	text, err := m.encode(value)
	return starlark.String(text), err
}

// decode returns the value of a JSON text.
func (m *meter) decode(text string) (starlark.Value, error) {
	m.work(int64(len(text)) / 16)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := m.next(decoder, 0)
	if err != nil {
		return nil, notJSON(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, notJSON(errors.New("there is more after the first value"))
	}
	return value, nil
}

func notJSON(err error) error {
	if limit := new(limitError); errors.As(err, &limit) {
		return err
	}
	return fmt.Errorf("the text is not JSON: %w", err)
}

// next returns the next value of a JSON text.
func (m *meter) next(decoder *json.Decoder, depth int) (starlark.Value, error) {
	token, err := decoder.Token()
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case depth > maxDepth:
		return nil, limitf("a JSON text is nested more than %d levels deep", maxDepth)
	}
	switch t := token.(type) {
	case string:
		return starlark.String(t), m.text(int64(len(t)) + sizeItem)
	case json.Number:
		return m.number(t.String())
	case bool:
		return starlark.Bool(t), nil
	case json.Delim:
		if t == '[' {
			return m.array(decoder, depth)
		}
		return m.object(decoder, depth)
	}
	return starlark.None, nil
}

func (m *meter) array(decoder *json.Decoder, depth int) (starlark.Value, error) {
	var items []starlark.Value
	for decoder.More() {
		item, err := m.next(decoder, depth+1)
		if err == nil {
			err = m.allocate(2 * sizeItem)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := decoder.Token()
	return starlark.NewList(items), err
}

func (m *meter) object(decoder *json.Decoder, depth int) (starlark.Value, error) {
	dict := starlark.NewDict(0)
	err := m.allocate(sizeDict)
	for n := 1; err == nil && decoder.More(); n++ {
		var key, value starlark.Value
		if key, err = m.next(decoder, depth+1); err == nil {
			value, err = m.next(decoder, depth+1)
		}
		if err == nil {
			err = m.allocate(sizeEntry)
		}
		if err == nil {
			err = dict.SetKey(key, value)
		}
		if err == nil && n >= 1024 && n&(n-1) == 0 {
			err = m.compares(dict)
		}
	}
	if err == nil {
		_, err = decoder.Token()
	}
	return dict, err
}

// number returns an int for digits alone, and a float otherwise.
func (m *meter) number(text string) (starlark.Value, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %.30s is too large", text)
		}
		return starlark.Float(f), nil
	}
	if len(text) > maxBits/4 {
		return nil, tooManyBits()
	}
	i, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("%.30s is not a number", text)
	}
	return starlark.MakeBigInt(i), nil
}

// encode returns a value as JSON. The members of a dict are in its order.
func (m *meter) encode(value starlark.Value) (string, error) {
	s, err := m.measure(value)
	if err != nil {
		return "", err
	}
	if err := m.allocate(2 * s.bytes); err != nil {
		return "", err
	}
	var b strings.Builder
	if err := encode(&b, value); err != nil {
		return "", err
	}
	return b.String(), m.text(int64(b.Len()))
}

// encode writes a value that was measured.
func encode(b *strings.Builder, value starlark.Value) error {
	switch v := value.(type) {
	case starlark.NoneType:
		b.WriteString("null")
	case starlark.Bool:
		b.WriteString(strconv.FormatBool(bool(v)))
	case starlark.Int:
		b.WriteString(v.String())
	case starlark.Float:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return fmt.Errorf("%v has no JSON form", v)
		}
		text, _ := json.Marshal(float64(v)) // finite
		b.Write(text)
	case starlark.String:
		quote(b, string(v))
	case *starlark.Dict:
		return encodeDict(b, v)
	case *starlark.List, starlark.Tuple:
		b.WriteByte('[')
		for i := range starlark.Len(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := encode(b, v.(starlark.Indexable).Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		return fmt.Errorf("a %s has no JSON form", v.Type())
	}
	return nil
}

func encodeDict(b *strings.Builder, dict *starlark.Dict) error {
	separator := byte('{')
	for key, value := range dict.Entries() {
		name, ok := key.(starlark.String)
		if !ok {
			return fmt.Errorf("a dict with a key that is a %s has no JSON form: use str(key)", key.Type())
		}
		b.WriteByte(separator)
		separator = ','
		quote(b, string(name))
		b.WriteByte(':')
		if err := encode(b, value); err != nil {
			return err
		}
	}
	if separator == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}

// quote writes a string without escapes for HTML.
func quote(b *strings.Builder, text string) {
	quoted, _ := jsontext.Encode(text) // a string has a JSON form
	b.Write(quoted)
}
