// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// label is the kind of a canister or the type of a content. read ignores it,
// because readLabel has already read it.
type label string

func (l label) absent() bool                      { return false }
func (l label) append(dst []byte) ([]byte, error) { return appendQuoted(dst, string(l)), nil }
func (l label) read([]byte) error                 { return nil }

// version is the version of the form that a canister needs. Version 1 is not
// written; see checkVersion.
type version int64

// newest is the newest version that this package knows.
const newest version = 3

func (v version) absent() bool                      { return v == 1 }
func (v version) append(dst []byte) ([]byte, error) { return strconv.AppendInt(dst, int64(v), 10), nil }
func (version) read([]byte) error                   { return nil }

// ErrNewer is wrapped by the errors of [Unmarshal] and [Decode] for a line in a
// newer version of the form.
var ErrNewer = errors.New("it was written by a newer program")

// checkVersion reads the member "v", which may be nil.
func checkVersion(raw []byte) error {
	if raw == nil {
		return nil
	}
	v, err := strconv.ParseUint(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || v > uint64(newest):
		return fmt.Errorf("v: %w, in version %.20s of the form; this one knows versions up to %d", ErrNewer, raw, newest)
	case err != nil || v == 0:
		return errors.New("v: want a version number of 1 or more")
	}
	return nil
}

// text is a string. It is written as a JSON string or, if it is not valid UTF-8,
// as an object with the bytes in base64.
type text string

func (t *text) absent() bool { return *t == "" }

func (t *text) append(dst []byte) ([]byte, error) {
	if utf8.ValidString(string(*t)) {
		return appendQuoted(dst, string(*t)), nil
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, []byte(*t))
	return append(dst, `"}`...), nil
}

func (t *text) read(raw []byte) error {
	if raw[0] == '"' {
		s, err := unquote(raw)
		*t = text(s)
		return err
	}
	if raw[0] != '{' {
		return wrongType("a string", raw)
	}
	members, _, err := splitObject(nil, raw)
	if err != nil {
		return err
	}
	if len(members) != 1 || string(members[0].name) != "base64" {
		return errors.New(`want a string, or an object whose one member is "base64"`)
	}
	var bytes data
	if err := bytes.read(members[0].raw); err != nil {
		return fmt.Errorf("base64: %w", err)
	}
	*t = text(bytes)
	return nil
}

// data is bytes in base64. Nil is absent; an empty slice is not.
type data []byte

func (d *data) absent() bool { return *d == nil }

func (d *data) append(dst []byte) ([]byte, error) {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), *d)
	return append(dst, '"'), nil
}

func (d *data) read(raw []byte) error {
	if raw[0] != '"' {
		return wrongType("a string in base64", raw)
	}
	s, err := unquoted(raw)
	if err != nil {
		return err
	}
	decoded, err := base64.StdEncoding.AppendDecode([]byte{}, s)
	if err != nil {
		return errors.New("want a string in base64, with padding (RFC 4648 section 4)")
	}
	*d = decoded
	return nil
}

// instant is a time in RFC 3339, in UTC, with as many decimals as necessary.
type instant time.Time

var errYear = errors.New("the year is outside of 0 to 9999, which RFC 3339 cannot write")

func (t *instant) absent() bool { return time.Time(*t).IsZero() }

func (t *instant) append(dst []byte) ([]byte, error) {
	utc := time.Time(*t).UTC()
	if year := utc.Year(); year < 0 || year > 9999 {
		return nil, errYear
	}
	dst = utc.AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"'), nil
}

func (t *instant) read(raw []byte) error {
	if raw[0] != '"' {
		return wrongType("a string with a time", raw)
	}
	s, err := unquoted(raw)
	if err != nil {
		return err
	}
	var parsed time.Time
	if err := parsed.UnmarshalText(s); err != nil {
		return fmt.Errorf("want a time in the form of RFC 3339, got %s", clip(s))
	}
	// Converting to UTC can move the time out of the range of years.
	parsed = parsed.UTC()
	if year := parsed.Year(); year < 0 || year > 9999 {
		return errYear
	}
	*t = instant(parsed)
	return nil
}

// flag is a boolean; false is absent.
type flag bool

func (f *flag) absent() bool                      { return !bool(*f) }
func (f *flag) append(dst []byte) ([]byte, error) { return strconv.AppendBool(dst, bool(*f)), nil }

func (f *flag) read(raw []byte) error {
	if raw[0] != 't' && raw[0] != 'f' {
		return wrongType("a boolean", raw)
	}
	*f = raw[0] == 't'
	return nil
}

// count is an integer; zero is absent.
type count int64

func (n *count) absent() bool                      { return *n == 0 }
func (n *count) append(dst []byte) ([]byte, error) { return strconv.AppendInt(dst, int64(*n), 10), nil }

func (n *count) read(raw []byte) error {
	i, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return errors.New("want an integer of 64 bits, without fraction or exponent")
	}
	*n = count(i)
	return nil
}

// size is an integer that may be unknown; nil is absent.
type size struct{ n **int64 }

func (s *size) absent() bool                      { return *s.n == nil }
func (s *size) append(dst []byte) ([]byte, error) { return strconv.AppendInt(dst, **s.n, 10), nil }

func (s *size) read(raw []byte) error {
	*s.n = new(int64)
	return (*count)(*s.n).read(raw)
}

// raw is a JSON value from outside; an empty one is absent.
type raw json.RawMessage

func (r *raw) absent() bool                      { return len(*r) == 0 }
func (r *raw) append(dst []byte) ([]byte, error) { return appendRaw(dst, *r) }

func (r *raw) read(value []byte) error {
	compact, err := appendRaw(make([]byte, 0, len(value)), value)
	*r = compact
	return err
}

// maxNesting limits the nesting of values from outside. The limit of
// encoding/json is 10,000 levels: a value close to it could be written, but
// inside a canister it could not be read back.
const maxNesting = 9000

// appendRaw appends value in compact form.
func appendRaw(dst, value []byte) ([]byte, error) {
	if !utf8.Valid(value) {
		return nil, errors.New("want a JSON value in UTF-8")
	}
	buffer := bytes.NewBuffer(dst)
	if err := json.Compact(buffer, value); err != nil {
		return nil, fmt.Errorf("want one valid JSON value: %w", err)
	}
	if len(value) > 2*maxNesting && nesting(value) > maxNesting {
		return nil, fmt.Errorf("the value nests deeper than %d levels", maxNesting)
	}
	return buffer.Bytes(), nil
}

// fields is an object from outside; an empty one is absent.
type fields Fields

func (f *fields) absent() bool                      { return len(*f) == 0 }
func (f *fields) append(dst []byte) ([]byte, error) { return appendObject(dst, nil, Fields(*f)) }

func (f *fields) read(raw []byte) error {
	members, _, err := splitObject(nil, raw)
	if err != nil {
		return err
	}
	return readObject(members, nil, (*Fields)(f))
}

// contents is a list of contents; an empty list is absent.
type contents []Content

func (cs *contents) absent() bool { return len(*cs) == 0 }

func (cs *contents) append(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for i, c := range *cs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendContent(dst, c); err != nil {
			return nil, fmt.Errorf("number %d: %w", i+1, err)
		}
	}
	return append(dst, ']'), nil
}

func (cs *contents) read(raw []byte) error {
	if raw[0] != '[' {
		return wrongType("an array", raw)
	}
	for w := (walk{raw, 1}); w.more(); {
		c, size, err := readContent(raw[w.at:])
		if err != nil {
			return fmt.Errorf("number %d: %w", len(*cs)+1, err)
		}
		*cs = append(*cs, c)
		w.at += size
	}
	return nil
}

// usage is the usage of an Assistant. Usage has no field for unknown members:
// unknown members of its object are kept in an object named "usage" among the
// unknown members of the canister.
type usage Assistant

func (u *usage) absent() bool { return u.Usage == nil }

func (u *usage) append(dst []byte) ([]byte, error) {
	var unknown fields
	if nested, ok := u.Unknown["usage"]; ok {
		if !json.Valid(nested) || nested[0] != '{' {
			return nil, errors.New("the unknown members are not a compact JSON object")
		}
		if err := unknown.read(nested); err != nil {
			return nil, err
		}
	}
	return appendObject(dst, u.Usage.members(), Fields(unknown))
}

func (u *usage) read(raw []byte) error {
	members, _, err := splitObject(nil, raw)
	if err != nil {
		return err
	}
	u.Usage = &Usage{}
	var unknown Fields
	if err := readObject(members, u.Usage.members(), &unknown); err != nil || unknown == nil {
		return err
	}
	nested, err := appendObject(nil, nil, unknown)
	if err != nil {
		return err
	}
	return u.Unknown.add("usage", nested)
}
