// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/binary"
	"encoding/json"
)

// valid reports what json.Valid does, which takes most of the time of reading a
// line: it is asked about the line without the long runs in its strings in which
// nothing can be wrong, that is, of neither quotes, backslashes nor controls.
func valid(line []byte) bool {
	const long = 32
	var rest []byte
	from, quoted := 0, false // what is not yet in rest, and whether a string has begun
	for i := 0; i < len(line); i++ {
		if quoted {
			if n := plain(line[i:]); n >= long {
				rest = append(rest, line[from:i]...)
				i += n
				from = i
			} else {
				i += n
			}
			if i >= len(line) {
				break
			}
			if line[i] == '\\' {
				i++ // whatever is escaped does not end the string
				continue
			}
		}
		if line[i] == '"' {
			quoted = !quoted
		}
	}
	if from == 0 {
		return json.Valid(line)
	}
	return json.Valid(append(rest, line[min(from, len(line)):]...))
}

// plain returns how many of the first bytes are neither a quote nor a backslash
// nor a control, eight at a time.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	zero := func(w uint64) uint64 { return (w - ones) &^ w & highs } // not 0 if a byte is
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		if zero(w^ones*'"')|zero(w^ones*'\\')|(w-ones*' ')&^w&highs != 0 {
			break
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}
