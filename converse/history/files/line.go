// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// A line is a canister in its JSON form with one additional member, the last:
//
//	"sum":"crc32c:9a8b7c6d+2"
//
// The sum covers the form without the member, and the digits after the plus. The digits
// say how many lines of the same append follow; if none follow, the plus is omitted. If
// the last line of a file expects further lines, a crash has interrupted the append.

const sumHead = `,"sum":"crc32c:`

// maxDigits is the maximum number of digits after the plus.
const maxDigits = 9

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(form []byte, more int) uint32 {
	sum := crc32.Checksum(form, castagnoli)
	if more > 0 {
		sum = crc32.Update(sum, castagnoli, strconv.AppendInt(nil, int64(more), 10))
	}
	return sum
}

// appendLine appends the line for a canister's JSON form; more is the number of lines
// of the same append that follow.
func appendLine(dst, form []byte, more int) []byte {
	dst = append(dst, form[:len(form)-1]...)
	dst = fmt.Appendf(dst, "%s%08x", sumHead, sumOf(form, more))
	if more > 0 {
		dst = fmt.Appendf(dst, "+%d", more)
	}
	return append(dst, "\"}\n"...)
}

// errEdited reports that a line does not match its sum.
var errEdited = errors.New(`the line has changed since it was written; if you edited it by hand, remove its member "sum"`)

// splitLine returns the canister's JSON form in a line, with or without its newline,
// and the number of lines of the same append that follow. A line without a sum is
// returned as it is.
func splitLine(line []byte) (form []byte, more int, err error) {
	line = bytes.TrimRight(line, " \t\r\n")
	digits := -1
	for n := range maxDigits + 1 {
		switch odd := differs(line, n); {
		case odd == 0:
			digits = n
		case odd <= 2: // nearly a sum: a damaged one
			err = errEdited
		}
		if digits >= 0 {
			break
		}
	}
	if digits < 0 {
		return line, 0, err
	}
	start := len(line) - tailLength(digits)
	form = append(line[:start:start], '}')
	value := line[start+len(sumHead) : len(line)-2]
	if digits > 0 {
		more, _ = strconv.Atoi(string(value[9:]))
	}
	sum, err := strconv.ParseUint(string(value[:8]), 16, 32)
	if err != nil || uint32(sum) != sumOf(form, more) {
		return nil, 0, errEdited
	}
	return form, more, nil
}

// tailLength returns the length of the member, the comma before it and the closing
// brace, with that many digits after the plus.
func tailLength(digits int) int {
	if digits > 0 {
		digits++ // the plus
	}
	return len(sumHead) + 8 + digits + len(`"}`)
}

// differs counts the bytes at the end of a line that differ from a sum with that many
// digits.
func differs(line []byte, digits int) int {
	start := len(line) - tailLength(digits)
	if start < 0 {
		return len(sumHead)
	}
	odd := 0
	for i, b := range line[start:] {
		var good bool
		switch at := i - len(sumHead); {
		case at < 0:
			good = b == sumHead[i]
		case at < 8:
			good = b >= '0' && b <= '9' || b >= 'a' && b <= 'f'
		case start+i >= len(line)-2:
			good = b == `"}`[start+i-len(line)+2]
		case at == 8:
			good = b == '+'
		default:
			good = b >= '0' && b <= '9'
		}
		if !good {
			odd++
		}
	}
	return odd
}

// isBlank reports whether a line is blank.
func isBlank(line []byte) bool { return len(bytes.TrimLeft(line, " \t\r\n")) == 0 }
