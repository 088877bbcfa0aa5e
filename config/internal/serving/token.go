// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
)

// hashPrefix names the algorithm of a hash.
const hashPrefix = "sha256:"

// tokenHash is the hash of a token, as consort token new prints it.
func tokenHash(to *string) grammar.Kind {
	return grammar.Kind{Name: "a string", Read: func(r *grammar.Reader, n *document.Node) {
		grammar.Text(to).Read(r, n)
		if *to != "" && parseHash(*to) == [sha256.Size]byte{} {
			r.Wrong(n, `expected %q and the SHA-256 of the token as 64 hexadecimal digits, as consort token new prints it`, hashPrefix)
		}
	}}
}

// parseHash returns zero for a text that is not a hash.
func parseHash(text string) (hash [sha256.Size]byte) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	if raw, err := hex.DecodeString(digits); ok && err == nil && len(raw) == len(hash) {
		copy(hash[:], raw)
	}
	return hash
}

// hashOf returns the hash of the client's token; zero without a token.
func hashOf(c *serve.Client) [sha256.Size]byte {
	if token := c.Token.Reveal(); token != "" {
		return sha256.Sum256([]byte(token))
	}
	return parseHash(c.TokenHash)
}

// expiry is a date, which is the last day, or a time.
func expiry(to *time.Time) grammar.Kind {
	return grammar.Kind{Name: "a string", Read: func(r *grammar.Reader, n *document.Node) {
		var said string
		grammar.Text(&said).Read(r, n)
		if said == "" {
			return
		}
		if day, err := time.Parse(time.DateOnly, said); err == nil {
			*to = day.AddDate(0, 0, 1)
			return
		}
		at, err := time.Parse(time.RFC3339, said)
		if err != nil {
			r.Wrong(n, `expected a date such as "2027-01-31", the last day in UTC, or a time such as "2027-01-31T12:00:00Z"`)
			return
		}
		*to = at
	}}
}
