// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"github.com/consort-go/consort/internal/textcut"
)

// The form of a name that a model may use: what the model APIs accept.
const (
	maxName   = 64
	separator = "__"
	mark      = "-x" // opens the hash of a name
	hashLen   = 12   // characters of 5 bits
	tailLen   = len(mark) + hashLen
)

// alphabet is that of the hash: base 32 in lower case (RFC 4648, section 6).
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// NameFor returns the name by which a model knows a tool of an ensemble. It is
// 1 to 64 letters, digits, '_' and '-', depends on nothing but its arguments,
// and differs for any two different pairs of them.
//
// The name is <ensemble>__<tool> wherever that is legal and can be read back:
// for ("files", "read_file") it is files__read_file. Where it is not, each run
// of characters that are not allowed becomes one '_', both parts are cut as
// needed, and 60 bits of a SHA-256 of both names follow: ("files", "read.file")
// is files__read_file-x and 12 more characters. [Catalog.Find] leads back from
// any name to its tool.
func NameFor(ensemble, tool string) string {
	if isPlain(ensemble, tool) {
		return ensemble + separator + tool
	}
	room := maxName - len(separator) - tailLen
	scope, own := sanitized(ensemble, "ensemble"), sanitized(tool, "tool")
	scope = strings.TrimRight(textcut.Prefix(scope, max(room/2, room-len(own))), "_")
	own = textcut.Prefix(own, room-len(scope))
	return scope + separator + own + mark + hashOf(ensemble, tool)
}

// isPlain reports whether <ensemble>__<tool> is legal, can be parted again at
// the first "__", and is not of the form that holds a hash.
func isPlain(ensemble, tool string) bool {
	return isLegal(ensemble) && isLegal(tool) &&
		len(ensemble)+len(separator)+len(tool) <= maxName &&
		!strings.Contains(ensemble, separator) && !strings.HasSuffix(ensemble, "_") &&
		!isHashed(tool)
}

// isLegal reports whether s is one or more of the characters allowed.
func isLegal(s string) bool {
	for i := range len(s) {
		if !isLegalByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isLegalByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// isHashed reports whether a name ends as one with a hash does.
func isHashed(name string) bool {
	if len(name) < tailLen {
		return false
	}
	tail := name[len(name)-tailLen:]
	return strings.HasPrefix(tail, mark) && strings.Trim(tail[len(mark):], alphabet) == ""
}

// sanitized returns s with '_' for each run of characters that are not allowed
// or are '_', or the substitute if nothing else is left.
func sanitized(s, substitute string) string {
	var b strings.Builder
	for i := range len(s) {
		if b.Len() == maxName {
			break
		}
		switch c := s[i]; {
		case c != '_' && isLegalByte(c):
			b.WriteByte(c)
		case b.Len() > 0 && b.String()[b.Len()-1] != '_':
			b.WriteByte('_')
		}
	}
	if clean := strings.TrimRight(b.String(), "_"); clean != "" {
		return clean
	}
	return substitute
}

// hashOf returns 60 bits of the SHA-256 of both names. The length of the first
// keeps ("a", "bc") and ("ab", "c") apart.
func hashOf(ensemble, tool string) string {
	input := binary.BigEndian.AppendUint64(nil, uint64(len(ensemble)))
	input = append(append(input, ensemble...), tool...)
	sum := sha256.Sum256(input)
	return base32.NewEncoding(alphabet).EncodeToString(sum[:10])[:hashLen]
}
