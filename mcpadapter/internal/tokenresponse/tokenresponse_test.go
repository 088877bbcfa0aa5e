// SPDX-License-Identifier: Apache-2.0

package tokenresponse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		fails  string
		lasts  time.Duration
		scopes []string
		bound  bool // with a proof
	}{
		`{"access_token":"a","token_type":"bearer","expires_in":"60","scope":"x  y"}`: {lasts: time.Minute, scopes: []string{"x", "y"}},
		`{"access_token":"a","expires_in":-1,"scope":["x"]}`:                          {scopes: []string{"x"}},
		`{"access_token":"a","token_type":"dpop","expires_in":1e300}`:                 {lasts: 10 * 365 * 24 * time.Hour, bound: true},
		`{"access_token":"a","token_type":"mac"}`:                                     {fails: `"mac"`},
		`{"access_token":"a","Access_Token":"b"}`:                                     {fails: "more than once"},
		`{"access_token":"a","acceſs_token":"b"}`:                                     {fails: "more than once"},
		`{"access_token":"a\nb"}`:                                                     {fails: "RFC 6750"},
		`{"refresh_token":"a"}`:                                                       {fails: "without an access token"},
		`[]`:                                                                          {fails: "as JSON"},
	} {
		r, err := Parse([]byte(text), true)
		if want.fails != "" {
			if err == nil || !strings.Contains(err.Error(), want.fails) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		lasts := time.Duration(0)
		if !r.Expiry.IsZero() {
			lasts = r.Expiry.Sub(r.At)
		}
		if lasts != want.lasts || !slices.Equal(r.Scopes, want.scopes) || r.Bound != want.bound {
			t.Errorf("%s: %s, %v, %v", text, lasts, r.Scopes, r.Bound)
		}
		if _, err := Parse([]byte(text), false); (err == nil) == want.bound {
			t.Errorf("%s, without a proof: %v", text, err)
		}
	}
	secret := &Tokens{Access: "secret"}
	if text := fmt.Sprintf("%v %+v %#v", secret, secret, secret); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// FuzzParse: whatever a server answers, a token fits into a header, and nothing lasts forever.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"access_token":"a","token_type":"DPoP","expires_in":3600,"scope":"a b","refresh_token":"r"}`))
	f.Add([]byte(`{"access_token":"a","access_token":"b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Parse(raw, true)
		if err != nil {
			return
		}
		if r.Access == "" || strings.ContainsAny(r.Access, " \r\n\x00\x7f") || r.Expiry.Sub(r.At) > 11*365*24*time.Hour && !r.Expiry.IsZero() {
			t.Errorf("%q: %+v", raw, *r)
		}
	})
}
