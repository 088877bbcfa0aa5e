// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/consort-go/consort/internal/jsontext"
)

const (
	// maxDetails limits the details of one answer. Some servers send each piece of a text as an
	// element without an index.
	maxDetails = 1 << 18
	// maxOpen is how many of the last details a piece can continue.
	maxOpen = 64
)

// details are the reasoning_details of a message. OpenRouter requires them unchanged and
// in order when the results of calls are sent (openrouter.ai/docs, Reasoning Tokens,
// Preserving Reasoning).
type details struct {
	list      []*detail
	overflown bool // more than maxDetails
}

// detail is one element. Its pieces have the same kind, index and ID.
type detail struct {
	kind, index, id string
	members         map[string]any
}

// payloads are the members whose pieces are concatenated.
var payloads = map[string]bool{"text": true, "summary": true, "data": true}

// payload is the value of such a member so far.
type payload []byte

// MarshalText implements [encoding.TextMarshaler].
func (p payload) MarshalText() ([]byte, error) { return p, nil }

// add adds details. If piece is true, they can continue earlier ones.
func (d *details) add(value gjson.Result, piece bool) {
	if !value.IsArray() {
		return
	}
	value.ForEach(func(_, one gjson.Result) bool {
		if one.IsObject() {
			d.addOne(one, piece)
		}
		return true
	})
}

func (d *details) addOne(one gjson.Result, piece bool) {
	kind, index, id := one.Get("type").String(), one.Get("index").String(), stringOf(one.Get("id"))
	to := d.continued(kind, index, id, piece)
	if to == nil {
		if len(d.list) == maxDetails {
			d.overflown = true
			return
		}
		to = &detail{kind: strings.Clone(kind), index: strings.Clone(index), members: map[string]any{}}
		d.list = append(d.list, to)
	}
	if to.id == "" {
		to.id = strings.Clone(id)
	}
	one.ForEach(func(key, value gjson.Result) bool {
		name := strings.Clone(key.Str)
		before, known := to.members[name]
		switch {
		case payloads[name] && value.Type == gjson.String:
			text, _ := before.(payload)
			to.members[name] = append(text, value.Str...)
		case value.Type == gjson.String:
			to.members[name] = strings.Clone(value.Str)
		case value.Type != gjson.Null || !known:
			to.members[name] = json.RawMessage(bytes.ToValidUTF8([]byte(value.Raw), []byte("\uFFFD")))
		}
		return true
	})
}

// continued returns the latest detail that a piece continues, among the last maxOpen; nil if
// it begins another one.
func (d *details) continued(kind, index, id string, piece bool) *detail {
	if !piece || index == "" {
		return nil
	}
	for _, known := range slices.Backward(d.list[max(0, len(d.list)-maxOpen):]) {
		if known.kind == kind && known.index == index && (id == "" || known.id == "" || known.id == id) {
			return known
		}
	}
	return nil
}

// text returns the details as JSON; nil for an empty list.
func (d *details) text() []byte {
	if len(d.list) == 0 {
		return nil
	}
	members := make([]map[string]any, len(d.list))
	for i, one := range d.list {
		members[i] = one.members
	}
	text, err := jsontext.Encode(members)
	if err != nil {
		return nil
	}
	return text
}
