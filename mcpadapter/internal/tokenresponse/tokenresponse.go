// SPDX-License-Identifier: Apache-2.0

// Package tokenresponse reads the responses of token endpoints (RFC 6749, section 5.1).
package tokenresponse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
)

// Tokens is a successful response. It prints no token.
type Tokens struct {
	Access, Refresh string
	Scopes          []string // nil if the response does not say
	At              time.Time
	Expiry          time.Time // zero if the response does not say
	Bound           bool      // the access token is bound to the key of the request's proof (RFC 9449)
}

// String hides the tokens.
func (t *Tokens) String() string { return "[hidden]" }

// GoString hides the tokens.
func (t *Tokens) GoString() string { return "[hidden]" }

// Parse reads a response of a token endpoint leniently, because servers differ: expires_in may be a
// string, 0 or missing, and scope may be a list. With proof, the request had one of a key.
func Parse(raw []byte, proof bool) (*Tokens, error) {
	var r struct {
		Access    string          `json:"access_token"`
		Refresh   string          `json:"refresh_token"`
		Type      string          `json:"token_type"`
		ExpiresIn json.RawMessage `json:"expires_in"`
		Scope     json.RawMessage `json:"scope"`
	}
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		return nil, errors.New("the authorization server did not answer with tokens as JSON")
	case repeated(raw) != "":
		return nil, fmt.Errorf("the authorization server answered with the parameter %s more than once", repeated(raw))
	case r.Access == "":
		return nil, errors.New("the authorization server answered without an access token")
	case r.Type != "" && !strings.EqualFold(r.Type, "bearer") && !(proof && strings.EqualFold(r.Type, dpop.Scheme)):
		return nil, fmt.Errorf("the authorization server issued a token of the type %q, which cannot be used", textcut.Bytes(display.Line(r.Type), 200))
	case strings.ContainsFunc(r.Access, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return nil, errors.New("the authorization server issued a token with characters that are not allowed (RFC 6750)")
	}
	t := &Tokens{Access: r.Access, Refresh: r.Refresh, Scopes: scopes(r.Scope), At: time.Now(), Bound: strings.EqualFold(r.Type, dpop.Scheme)}
	if lasts := Seconds(r.ExpiresIn); lasts > 0 {
		t.Expiry = t.At.Add(lasts)
	}
	return t, nil
}

// repeated returns the name of a parameter that a response has more than once (RFC 6749, section
// 3.2), in any case of letters, as [json.Unmarshal] reads it. Parameters without a meaning may be.
func repeated(raw []byte) string {
	seen, decoder := map[string]bool{}, json.NewDecoder(bytes.NewReader(raw))
	_, _ = decoder.Token() // it is a JSON object
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || decoder.Decode(&value) != nil {
			return ""
		}
		for _, known := range []string{"access_token", "refresh_token", "token_type", "expires_in", "scope"} {
			if !strings.EqualFold(name, known) {
				continue
			}
			if seen[known] {
				return known
			}
			seen[known] = true
		}
	}
	return ""
}

// Seconds returns 0 for anything that is not a positive number.
func Seconds(raw json.RawMessage) time.Duration {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	const most = 10 * 365 * 24 * 60 * 60
	return time.Duration(min(n, most) * float64(time.Second))
}

func scopes(raw json.RawMessage) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return slices.Compact(strings.Fields(text))
	}
	var list []string
	_ = json.Unmarshal(raw, &list)
	return list
}
