// SPDX-License-Identifier: Apache-2.0

// Package envelope checks a message of a client before it is decoded, and tells what a server
// must know of it by then.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// maxDepth is the maximum nesting depth of a client's message. The SDK has the same
// limit.
const maxDepth = 1000

// maxMembers bounds the members of a message, and separately the members of its params.
const maxMembers = 64

// maxBatch bounds the messages of a batch.
const maxBatch = 100

// Envelope describes a message before it is decoded.
type Envelope struct {
	Batch  bool
	Method string // of the request or notification; empty for a response
	Call   bool   // it has an ID
	Size   int    // number of messages in a batch
}

// knownMembers maps the folded names of the defined members of messages and params to
// their spelling. A case-insensitive parser takes Arguments for arguments; this server
// refuses such names instead of choosing an interpretation.
var knownMembers = func() map[string]string {
	known := make(map[string]string)
	for _, name := range []string{
		"jsonrpc", "id", "method", "params", "result", "error",
		"name", "arguments", "_meta", "cursor", "uri", "ref", "argument", "level", "inputResponses", "requestState",
		"protocolVersion", "capabilities", "clientInfo", "requestId", "notifications",
	} {
		known[folded(name)] = name
	}
	return known
}()

// known maps the spelling of the defined members to their folded names.
var known = func() map[string]member {
	spelled := make(map[string]member)
	for same, name := range knownMembers {
		spelled[name] = member{name, same}
	}
	return spelled
}()

// member is the name of a member, as it is written and folded.
type member struct{ name, folded string }

// memberOf returns the member whose name is quoted; the defined ones take no memory.
func memberOf(quoted []byte) member {
	if m, ok := known[string(quoted[1:len(quoted)-1])]; ok {
		return m
	}
	name := Unquoted(quoted)
	return member{name, folded(name)}
}

// folded returns the same string for names that differ only in case, including letters
// with more than two Unicode case variants.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// Read checks a message before it is decoded. It refuses a message with duplicate
// members in the message or in its params, ignoring case: two parsers could read it
// differently, and a gateway in front of the server might have checked the other
// reading. It also refuses a message that nests too deep. The arguments of tools are
// left to the invoker to check.
func Read(message []byte) (Envelope, error) {
	var e Envelope
	in := inspector{text: message, envelope: &e}
	err := in.run()
	return e, err
}

// inspector scans a message once.
type inspector struct {
	text     []byte
	envelope *Envelope
	depth    int
	base     int // the depth of the members of a message: 1, or 2 in a batch
	levels   [4]level
	inParams bool // the value at base+1 belongs to params
	value    string
	param    string // the current member of params at base+1

	id        string          // of the current message
	isRequest bool            // it has a method
	ids       map[string]bool // of the requests of a batch
}

// level is an object or array near the root.
type level struct {
	object bool
	key    bool // a key comes next
	seen   []string
}

var errDeep = fmt.Errorf("it nests deeper than %d levels", maxDepth)

func (in *inspector) run() error {
	in.base = 1
	if text := bytes.TrimLeft(in.text, " \t\r\n"); len(text) > 0 && text[0] == '[' {
		in.envelope.Batch, in.base = true, 2
	}
	for i := 0; i < len(in.text); i++ {
		switch in.text[i] {
		case '{', '[':
			in.depth++
			if in.depth > maxDepth {
				return errDeep
			}
			if in.depth == in.base && in.envelope.Batch {
				if in.envelope.Size++; in.envelope.Size > maxBatch {
					return fmt.Errorf("it has more than %d messages", maxBatch)
				}
			}
			if in.depth < len(in.levels) {
				object := in.text[i] == '{'
				in.levels[in.depth] = level{object: object, key: object}
			}
		case '}', ']':
			in.depth--
			if in.depth < 0 {
				return errors.New("it is not JSON")
			}
			if in.depth == in.base-1 {
				if err := in.endMessage(); err != nil {
					return err
				}
			}
			if in.depth == 0 && len(bytes.TrimLeft(in.text[i+1:], " \t\r\n")) > 0 {
				return errors.New("it is followed by something else: a body must be one message")
			}
		case ':':
			if err := in.checkID(in.text[i+1:]); err != nil {
				return err
			}
		case ',':
			if in.depth < len(in.levels) {
				in.levels[in.depth].key = in.levels[in.depth].object
			}
		case '"':
			end := wire.StringEnd(in.text, i)
			if end < 0 {
				return errors.New("it is not JSON")
			}
			if in.depth > 0 && in.depth < len(in.levels) {
				if err := in.string(in.text[i:end]); err != nil {
					return err
				}
			}
			i = end - 1
		}
	}
	return nil
}

// string processes a string near the root: a key, or the value of method.
func (in *inspector) string(quoted []byte) error {
	l := &in.levels[in.depth]
	if !l.key {
		if in.depth == in.base && in.value == "method" && !in.envelope.Batch {
			in.envelope.Method = Unquoted(quoted)
		}
		return nil
	}
	l.key = false
	if in.depth != in.base && !(in.depth == in.base+1 && in.inParams) {
		return nil
	}
	m := memberOf(quoted)
	name := m.name
	if in.depth == in.base {
		in.value, in.inParams = name, name == "params"
		in.envelope.Call = in.envelope.Call || name == "id"
		in.isRequest = in.isRequest || name == "method"
	} else {
		in.param = name
	}
	spelling, isKnown := knownMembers[m.folded]
	switch {
	case slices.Contains(l.seen, m.folded):
		return fmt.Errorf("the member %q occurs twice", textcut.Bytes(name, wire.MaxQuoted))
	case len(l.seen) >= maxMembers:
		return fmt.Errorf("it has more than %d members", maxMembers)
	case isKnown && spelling != name:
		return fmt.Errorf("the member %q is written as %q", spelling, textcut.Bytes(name, wire.MaxQuoted))
	}
	if l.seen == nil {
		l.seen = make([]string, 0, 4) // a request has jsonrpc, id, method and params
	}
	l.seen = append(l.seen, m.folded)
	return nil
}

// Unquoted returns the string that JSON quotes, or "" if it is not one.
func Unquoted(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // a value that is not a string is not a known name either
	return s
}

// checkID checks the value after a colon if it identifies a request: it must be a
// string, or an integer that is the same in every parser (MCP 2025-11-25, basic §
// Requests; RFC 8259, section 6). With any other value the response could carry a
// different id, or a different request could be cancelled.
func (in *inspector) checkID(rest []byte) error {
	isID := in.depth == in.base && in.value == "id"
	isOther := in.depth == in.base+1 && in.inParams && in.param == "requestId"
	if !isID && !isOther || !in.levels[in.depth].object {
		return nil
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	var id string
	if len(rest) > 0 && rest[0] == '"' {
		if end := wire.StringEnd(rest, 0); end > 0 {
			id = "string " + Unquoted(rest[:end])
		}
	} else {
		text := string(rest[:numberEnd(rest)])
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text && -maxInteger <= n && n <= maxInteger {
			id = "integer " + text
		}
	}
	if id == "" {
		return errID
	}
	if isID {
		in.id = id
	}
	return nil
}

// maxInteger is the largest integer that every JSON parser distinguishes from its
// neighbours.
const maxInteger = 1<<53 - 1

var errID = fmt.Errorf("its id is neither a string nor an integer from -%d to %d", maxInteger, maxInteger)

// numberEnd returns the index after the number at the start of text.
func numberEnd(text []byte) int {
	end := 0
	for end < len(text) && bytes.IndexByte([]byte("+-.0123456789eE"), text[end]) >= 0 {
		end++
	}
	return end
}

// endMessage checks that each request of a batch has a unique id, because each gets one
// response.
func (in *inspector) endMessage() error {
	if in.envelope.Batch && in.isRequest && in.id != "" {
		if in.ids[in.id] {
			return errors.New("two of its requests have the same id")
		}
		if in.ids == nil {
			in.ids = make(map[string]bool)
		}
		in.ids[in.id] = true
	}
	in.id, in.isRequest, in.value = "", false, ""
	return nil
}
