// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/consort-go/consort/internal/textcut"
)

// join returns a JSON list of at most most bytes. If there is no room for all
// items, the last ones, or the first ones if backwards, are replaced by an item
// from note, which has their number. If there are several items, each gets at
// most half of the room.
func join(count, most int, backwards bool, item, note func(n int) json.RawMessage) json.RawMessage {
	each, reserve := most, 0
	if count > 1 {
		each, reserve = most/2, len(note(count))+len(",")
	}
	var items [][]byte
	room := most - len("[]")
	for i := range count {
		index := i
		if backwards {
			index = count - 1 - i
		}
		if i == count-1 {
			reserve = 0
		}
		text := fit(item(index), min(each, room-reserve-len(",")))
		if text == nil {
			if last := note(count - i); len(last) <= room {
				items = append(items, last)
			}
			break
		}
		items = append(items, text)
		room -= len(text) + len(",")
	}
	if backwards {
		slices.Reverse(items)
	}
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
}

// fit shortens an item of a list, or returns nil if too little of it would be
// left.
func fit(item json.RawMessage, room int) json.RawMessage {
	if len(item) > room && room < leastItem {
		return nil
	}
	return shorten(item, room)
}

// leastItem is the minimum room for an item that has to be shortened, in bytes.
const leastItem = 64

// leastValue is the minimum room for any value: the length of gap.
const leastValue = len(gap)

// gap replaces a value that does not fit.
const gap = `"…"`

// shorten returns a valid JSON value of at most most bytes, which must be at
// least leastValue. It cuts long strings at the end, with a note, and removes the
// last elements of lists and objects.
func shorten(value json.RawMessage, most int) json.RawMessage {
	if len(value) <= most {
		return value
	}
	s := shortener{decoder: json.NewDecoder(bytes.NewReader(value)), longest: max(most/2, leastValue)}
	s.decoder.UseNumber()
	s.value(most)
	return s.out
}

type shortener struct {
	decoder *json.Decoder
	out     []byte
	longest int  // limit for a string
	full    bool // only closing brackets are written from now on
}

// value writes the next value in at most room bytes, which must be at least
// leastValue.
func (s *shortener) value(room int) {
	token, err := s.decoder.Token()
	if err != nil { // cannot happen: the value is valid
		s.gap()
		return
	}
	switch v := token.(type) {
	case json.Delim:
		s.all(v, room)
	case string:
		s.text(v, min(room, s.longest))
	default:
		text := encode(v)
		if len(text) > room {
			s.gap()
			return
		}
		s.out = append(s.out, text...)
	}
}

func (s *shortener) gap() {
	s.out = append(s.out, gap...)
	s.full = true
}

// all writes as much of a list or an object as there is room for.
func (s *shortener) all(open json.Delim, room int) {
	s.out = append(s.out, byte(open))
	room -= len("[]")
	for first := true; !s.full && s.decoder.More(); first = false {
		begin := len(s.out)
		if !first {
			s.out = append(s.out, ',')
		}
		if open == '{' {
			name, err := s.decoder.Token()
			if err != nil {
				break
			}
			s.out = append(append(s.out, encode(name)...), ':')
		}
		rest := room - (len(s.out) - begin)
		if rest < leastValue {
			s.out, s.full = s.out[:begin], true
			break
		}
		s.value(rest)
		room -= len(s.out) - begin
	}
	if !s.full {
		_, _ = s.decoder.Token() // the closing bracket
	}
	s.out = append(s.out, byte(open)+2) // the closing bracket in ASCII
}

// text writes a string, or its beginning and the number of bytes left out.
func (s *shortener) text(text string, room int) {
	quoted := encode(text)
	for keep := room; len(quoted) > room; keep = keep * room / len(quoted) {
		kept := textcut.Prefix(text, min(keep, len(text)))
		if kept == "" {
			quoted = []byte(gap)
			break
		}
		quoted = encode(fmt.Sprintf("%s… (%d more bytes)", kept, len(text)-len(kept)))
	}
	s.out = append(s.out, quoted...)
}
