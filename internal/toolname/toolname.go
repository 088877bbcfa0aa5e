// SPDX-License-Identifier: Apache-2.0

// Package toolname makes the names under which models see tools.
package toolname

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"github.com/consort-go/consort/internal/textcut"
)

// The form of a name for a model, which all model APIs accept.
const (
	// Max is the maximum length of a name.
	Max       = 64
	separator = "__"
	mark      = "-x" // precedes the hash in a name
	hashLen   = 12   // characters of 5 bits
	tailLen   = len(mark) + hashLen
)

// alphabet is the alphabet of the hash: base 32 in lower case (RFC 4648, section 6).
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// For returns a tool's name for models; see ensemble.NameFor.
func For(ensemble, tool string) string {
	if isPlain(ensemble, tool) {
		return ensemble + separator + tool
	}
	room := Max - len(separator) - tailLen
	scope, own := sanitized(ensemble, "ensemble"), sanitized(tool, "tool")
	scope = strings.TrimRight(textcut.Prefix(scope, max(room/2, room-len(own))), "_")
	own = textcut.Prefix(own, room-len(scope))
	return scope + separator + own + mark + hashOf(ensemble, tool)
}

// isPlain reports whether <ensemble>__<tool> is legal, can be split again at the first
// "__", and does not end like a name with a hash.
func isPlain(ensemble, tool string) bool {
	return isLegal(ensemble) && isLegal(tool) &&
		len(ensemble)+len(separator)+len(tool) <= Max &&
		!strings.Contains(ensemble, separator) && !strings.HasSuffix(ensemble, "_") &&
		!isHashed(tool)
}

// isLegal reports whether s consists of one or more allowed characters.
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

// isHashed reports whether a name ends like a name with a hash.
func isHashed(name string) bool {
	if len(name) < tailLen {
		return false
	}
	tail := name[len(name)-tailLen:]
	return strings.HasPrefix(tail, mark) && strings.Trim(tail[len(mark):], alphabet) == ""
}

// sanitized returns s with '_' for each run of characters that are not allowed or are
// '_', or the substitute if nothing else is left.
func sanitized(s, substitute string) string {
	var b strings.Builder
	for i := range len(s) {
		if b.Len() == Max {
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
// distinguishes ("a", "bc") from ("ab", "c").
func hashOf(ensemble, tool string) string {
	input := binary.BigEndian.AppendUint64(nil, uint64(len(ensemble)))
	input = append(append(input, ensemble...), tool...)
	sum := sha256.Sum256(input)
	return base32.NewEncoding(alphabet).EncodeToString(sum[:10])[:hashLen]
}
