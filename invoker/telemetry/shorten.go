// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/consort-go/consort/internal/textcut"
)

// join writes a JSON list of at most so many bytes. Where there is no room for
// all items, the last ones are left out, or the first ones if backwards, and
// note makes an item that says how many. One item gets at most half of the room
// if there are others.
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

// fit shortens an item of a list, or returns nil where not enough would be left
// of it.
func fit(item json.RawMessage, room int) json.RawMessage {
	if len(item) > room && room < leastItem {
		return nil
	}
	return shorten(item, room)
}

// leastItem is the room that is enough for an item, in bytes.
const leastItem = 64

// leastValue is the room that any value can be written in: that of gap.
const leastValue = len(gap)

// gap stands for a value that there was no room for.
const gap = `"…"`

// shorten writes a valid JSON value in at most so many bytes, no less than
// leastValue: long strings lose their end, and say so, and lists and objects
// theirs.
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
	longest int  // string
	full    bool // nothing more is written but what closes
}

// value writes the next value in at most so many bytes, no less than
// leastValue.
func (s *shortener) value(room int) {
	token, err := s.decoder.Token()
	if err != nil { // the value is valid
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

// all writes a list or an object, as much of it as there is room for.
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
		_, _ = s.decoder.Token() // what closes
	}
	s.out = append(s.out, byte(open)+2) // in ASCII
}

// text writes a string, or its beginning and how many bytes were left out.
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
