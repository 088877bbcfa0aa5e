// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Marshal returns the JSON form of c as one line, without a trailing newline. The
// same canister always gives the same bytes.
//
// Unmarshal restores an equal canister if c is in canonical form: the time is in
// UTC and without a monotonic reading, a canister without content has a nil
// slice, and one without fields a nil map. Strings need not be valid UTF-8.
//
// Errors are mistakes of the caller: a canister or content that is nil or not
// held by value; a year outside of 0 to 9999; a value in Fields or in
// [StructuredContent] that is not one valid JSON text in UTF-8, or nests deeper
// than 9,000 levels; a name in Fields that is not UTF-8; a name in Unknown that
// the form itself uses.
func Marshal(c Canister) ([]byte, error) {
	line, err := appendCanister(make([]byte, 0, 512), c)
	if err != nil {
		return nil, fmt.Errorf("canister: %w", err)
	}
	return line, nil
}

// Unmarshal parses the JSON form of a canister; white space around it is ignored.
// The canister shares no memory with line.
//
// Unknown members are kept in [Extra]. Unmarshal returns an error for an unknown
// kind of canister or type of content, a value of the wrong type, a duplicate
// member, and a version of the form that is newer than this package. Missing
// members have the zero value: use package sequence to find out whether a canister is
// valid in its history.
func Unmarshal(line []byte) (Canister, error) {
	c, err := readCanister(line)
	if err != nil {
		return nil, fmt.Errorf("canister: %w", err)
	}
	return c, nil
}

func appendCanister(dst []byte, c Canister) ([]byte, error) {
	var err error
	switch c := c.(type) {
	case User:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Assistant:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Supervisor:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Document:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Invocation:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Result:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Intent:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Wait:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	case Answer:
		dst, err = appendObject(dst, c.members(), c.Unknown)
	default:
		return nil, fmt.Errorf("%T is not one of the kinds, held by value", c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.Kind(), clip(c.Header().ID), err)
	}
	return dst, nil
}

// room is the capacity for members; it is enough for most objects, so that the
// slice stays on the stack.
const room = 12

func readCanister(line []byte) (Canister, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not UTF-8")
	}
	if !valid(line) { // encoding/json decides whether it is invalid and makes the error
		if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
			return nil, fmt.Errorf("the line is not one JSON object: %w", err)
		}
	}
	members, _, err := splitObject(make([]rawMember, 0, room), bytes.Trim(line, " \t\r\n"))
	if err != nil {
		return nil, err
	}
	// Check the version first: a newer version explains other faults.
	if err := checkVersion(lookup(members, "v")); err != nil {
		return nil, err
	}
	kind, err := readLabel(members, "kind")
	if err != nil {
		return nil, err
	}
	switch Kind(kind) {
	case KindUser:
		return read[User](members)
	case KindAssistant:
		return read[Assistant](members)
	case KindSupervisor:
		return read[Supervisor](members)
	case KindDocument:
		return read[Document](members)
	case KindInvocation:
		return read[Invocation](members)
	case KindResult:
		return read[Result](members)
	case KindIntent:
		return read[Intent](members)
	case KindWait:
		return read[Wait](members)
	case KindAnswer:
		return read[Answer](members)
	}
	return nil, fmt.Errorf("unknown kind %s: want user, assistant, supervisor, document, invocation, result, intent, wait or answer", clip(kind))
}

// readContent returns the content at the start of raw, and the index of its end.
func readContent(raw []byte) (c Content, end int, err error) {
	members, end, err := splitObject(make([]rawMember, 0, room), raw)
	if err != nil {
		return nil, 0, err
	}
	c, err = contentOf(members)
	return c, end, err
}

// readLabel returns the member that determines the meaning of the others.
func readLabel(members []rawMember, name string) (string, error) {
	raw := lookup(members, name)
	if raw == nil {
		return "", fmt.Errorf("the member %q is missing", name)
	}
	if raw[0] != '"' {
		return "", fmt.Errorf("%s: %w", name, wrongType("a string", raw))
	}
	return unquote(raw)
}

// read returns a T, which is a canister or a content, with the given members.
func read[T any, P interface {
	*T
	members() []member
	extra() *Extra
}](members []rawMember) (T, error) {
	var object T
	err := readObject(members, P(&object).members(), &P(&object).extra().Unknown)
	return object, err
}

func (e *Extra) extra() *Extra { return e }
