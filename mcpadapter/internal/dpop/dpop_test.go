// SPDX-License-Identifier: Apache-2.0

package dpop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// The values of RFC 9449: the key of its examples (section 4.1), the thumbprint (section 6.1), and
// the token and its hash (section 7.1).
func TestExamplesOfTheRFC(t *testing.T) {
	const x, y = "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs", "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"
	if got := thumbprint(x, y); got != "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" {
		t.Errorf("the thumbprint is %s", got)
	}
	if got := digest("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"); got != "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo" {
		t.Errorf("the hash of the token is %s", got)
	}
}

func newKey(t testing.TB) *Key {
	t.Helper()
	text, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(shown, text) || !strings.Contains(shown, "[hidden]") {
		t.Errorf("printing shows the key: %s", shown)
	}
	return key
}

// claimsOf returns the claims of a proof, whose signature it verifies with the key in its header.
func claimsOf(t testing.TB, proof string) (claims map[string]any, header jose.Header) {
	t.Helper()
	signed, err := jose.ParseSignedCompact(proof, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	header = signed.Signatures[0].Protected
	raw, err := signed.Verify(header.JSONWebKey)
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims, header
}

func TestProof(t *testing.T) {
	key := newKey(t)
	u, _ := url.Parse("HTTPS://ada:secret@Example.COM:443/a%2Fb?q=1#part")
	proof, err := key.Proof("POST", u, "", "")
	if err != nil {
		t.Fatal(err)
	}
	claims, header := claimsOf(t, proof)
	if header.ExtraHeaders["typ"] != "dpop+jwt" || !header.JSONWebKey.IsPublic() {
		t.Errorf("the header is %+v", header)
	}
	if claims["htu"] != "https://example.com/a%2Fb" || claims["htm"] != "POST" || claims["ath"] != nil || claims["nonce"] != nil ||
		len(claims) != 4 {
		t.Errorf("the claims are %v", claims)
	}
	other, _ := key.Proof("GET", &url.URL{Scheme: "http", Host: "[::1]:8080"}, "token", "n")
	claims2, _ := claimsOf(t, other)
	if claims2["htu"] != "http://[::1]:8080/" || claims2["htm"] != "GET" || claims2["ath"] != digest("token") || claims2["nonce"] != "n" {
		t.Errorf("the claims are %v", claims2)
	}
	if claims["jti"] == claims2["jti"] {
		t.Error("two proofs have the same jti")
	}
}

func TestDamagedKeys(t *testing.T) {
	for _, text := range []string{"", "!", "c2hvcnQ", strings.Repeat("A", 43), strings.Repeat("_", 43), strings.Repeat("A", 1<<16)} {
		if _, err := ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) && text != "!" {
			t.Errorf("%.50q: %v", text, err)
		}
	}
}

// Nonces belong to one server and one kind; hostile ones are not taken.
func TestNonces(t *testing.T) {
	var n Nonces
	at, _ := url.Parse("https://one.example/mcp")
	other, _ := url.Parse("https://two.example/mcp")
	learn := func(values ...string) bool { return n.Learn(at, true, http.Header{"Dpop-Nonce": values}, "used") }
	if !learn("first") || learn("used") || !learn("second") {
		t.Error("whether a nonce is new")
	}
	for _, hostile := range [][]string{
		nil, {""}, {"a", "b"}, {"a b"}, {"a\r\nX: y"}, {"a\x00"}, {"\x7f"}, {`"`}, {`\`}, {"ä"}, {"\xff"}, {strings.Repeat("a", maxNonce+1)},
	} {
		if learn(hostile...) || n.Of(at, true) != "second" {
			t.Errorf("%.50q was taken", hostile)
		}
	}
	if n.Of(at, false) != "" || n.Of(other, true) != "" {
		t.Error("the nonce of another server")
	}
	for i := range 10 * maxNonces {
		to := &url.URL{Scheme: "https", Host: fmt.Sprint(i, ".example")}
		if n.Learn(to, true, http.Header{"Dpop-Nonce": {"x"}}, ""); len(n.last) > maxNonces {
			t.Fatalf("%d servers are remembered", len(n.last))
		}
	}
}

// FuzzNonces: whatever a server sends as its nonce, the next proof is one header without control
// characters, and at most a nonce longer than without it.
func FuzzNonces(f *testing.F) {
	key := newKey(f)
	to, _ := url.Parse("https://mcp.example/mcp")
	for _, seed := range []string{"", "nonce", "a\r\nAuthorization: x", `","ath":"x`, strings.Repeat("n", 5000), "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, nonce string) {
		var n Nonces
		n.Learn(to, true, http.Header{"Dpop-Nonce": {nonce}}, "")
		proof, err := key.Proof("POST", to, "token", n.Of(to, true))
		if err != nil || len(proof) > 1000+2*maxNonce || strings.ContainsFunc(proof, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			t.Fatalf("the proof is %q, %v", proof, err)
		}
		claims, _ := claimsOf(t, proof)
		if got, _ := claims["nonce"].(string); got != "" && got != nonce || claims["ath"] != digest("token") {
			t.Fatalf("the claims are %v", claims)
		}
	})
}

// A request is sent again once, with its body and a new proof, only if the server demands another
// nonce than the one that it got.
func TestSend(t *testing.T) {
	const demand = `DPoP error="use_dpop_nonce"`
	for name, test := range map[string]struct {
		challenge string
		nonces    []string // of the answers; the last one goes on
		noBody    bool     // the body cannot be read again
		sent      int
	}{
		"a nonce":               {demand, []string{"n1"}, false, 2},
		"always another":        {demand, []string{"n1", "n2", "n3"}, false, 2},
		"no nonce":              {demand, []string{""}, false, 1},
		"a hostile nonce":       {demand, []string{"a b"}, false, 1},
		"another reason":        {`DPoP error="invalid_token"`, []string{"n1"}, false, 1},
		"no second body":        {demand, []string{"n1"}, true, 1},
		"the nonce was too old": {demand, []string{"n1", "n1"}, false, 2},
	} {
		p := &Prover{Key: newKey(t), Token: "token", Nonces: new(Nonces)}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://mcp.example/mcp", strings.NewReader("body"))
		if test.noBody {
			req.GetBody = nil
		}
		seen := map[any]bool{}
		response, err := p.Send(req, func(r *http.Request) (*http.Response, error) {
			claims, _ := claimsOf(t, r.Header.Get("DPoP"))
			if body, err := io.ReadAll(r.Body); string(body) != "body" || seen[claims["jti"]] || err != nil {
				t.Errorf("%s: the body is %q, the claims are %v, %v", name, body, claims, err)
			}
			answer := test.nonces[min(len(seen), len(test.nonces)-1)]
			seen[claims["jti"]] = true
			header := http.Header{"Www-Authenticate": {test.challenge}}
			if answer != "" {
				header["Dpop-Nonce"] = []string{answer}
			}
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: header, Body: io.NopCloser(strings.NewReader("refused"))}, nil
		})
		if err != nil || len(seen) != test.sent {
			t.Errorf("%s: sent %d times, want %d: %v", name, len(seen), test.sent, err)
			continue
		}
		if rest, err := io.ReadAll(response.Body); string(rest) != "refused" || err != nil {
			t.Errorf("%s: the last answer has %q, %v", name, rest, err)
		}
	}
}
