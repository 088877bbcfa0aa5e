// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Without returns s without invisible characters, and the characters it removed, each
// listed once and in order.
func Without(s string, invisible func(rune) bool) (clean string, taken []string) {
	if strings.IndexFunc(s, invisible) < 0 {
		return s, nil
	}
	s = strings.ReplaceAll(s, "\r\n", "\n") // an ordinary line break: not reported
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if !invisible(r) {
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD, so that bytes never join
		} else if name := fmt.Sprintf("U+%04X", r); !slices.Contains(taken, name) {
			taken = append(taken, name)
		}
		s = s[size:]
	}
	return b.String(), taken
}
