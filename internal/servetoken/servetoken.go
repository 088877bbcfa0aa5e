// SPDX-License-Identifier: Apache-2.0

// Package servetoken makes the bearer tokens of the clients of consort serve.
package servetoken

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/tomltext"
)

// Token is a new token, and what the configuration says about it.
type Token struct {
	Name    string `json:"name"`
	Token   string `json:"token"`
	Hash    string `json:"token_hash"`        // the text of the key token_hash
	Expires string `json:"expires,omitempty"` // the last day, in UTC; empty if it never expires
}

// prefix makes a token recognizable for programs that look for leaked secrets.
const prefix = "consort_"

// New returns a token of 256 random bits for a client. expires is a number of days such as
// 90d, or the last day such as 2027-01-31; empty means never.
//
// The configuration has the SHA-256 of the token. A slow hash, as for passwords, is not
// needed: 256 random bits cannot be guessed, however fast the hash is.
func New(name, expires string) (*Token, error) {
	if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, errors.New("expected the name of the client, without control characters")
	}
	day, err := lastDay(expires, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	token := prefix + base64.RawURLEncoding.EncodeToString(random[:])
	hash := sha256.Sum256([]byte(token))
	return &Token{name, token, "sha256:" + hex.EncodeToString(hash[:]), day}, nil
}

// maxDays bounds the time until a token expires.
const maxDays = 36500

func lastDay(expires string, now time.Time) (string, error) {
	if expires == "" {
		return "", nil
	}
	if text, isDays := strings.CutSuffix(expires, "d"); isDays {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > maxDays {
			return "", fmt.Errorf("expected a number of days from 1 to %d, such as 90d, and not %q", maxDays, expires)
		}
		return now.AddDate(0, 0, days).Format(time.DateOnly), nil
	}
	day, err := time.Parse(time.DateOnly, expires)
	switch {
	case err != nil:
		return "", fmt.Errorf("expected a number of days such as 90d, or the last day such as 2027-01-31, and not %q", expires)
	case day.AddDate(0, 0, 1).Before(now):
		return "", fmt.Errorf("the day %s has passed", expires)
	}
	return expires, nil
}

// TOML returns the lines for the configuration. They do not contain the token. The trusted value
// keeps the conversations of clients apart.
func (t *Token) TOML() string {
	var lines strings.Builder
	lines.WriteString("[[serve.clients]]\n")
	fmt.Fprintf(&lines, "name = %s\n", tomltext.Quote(t.Name))
	fmt.Fprintf(&lines, "token_hash = %s\n", tomltext.Quote(t.Hash))
	fmt.Fprintf(&lines, "trusted = {user = %s} # whose conversations the client has\n", tomltext.Quote(t.Name))
	if t.Expires != "" {
		fmt.Fprintf(&lines, "expires = %s\n", tomltext.Quote(t.Expires))
	}
	return lines.String()
}
