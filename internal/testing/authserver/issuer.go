// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Key signs tokens. Its algorithm is one of RS256, RS512, ES256, EdDSA, HS256 and none.
type Key struct {
	ID, Algorithm string
	RSA           *rsa.PrivateKey
	EC            *ecdsa.PrivateKey
	Ed            ed25519.PrivateKey
	HMAC          []byte
}

// NewKey returns a key for ES256.
func NewKey(t testing.TB, id string) *Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Key{ID: id, Algorithm: "ES256", EC: private}
}

func encoded(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// JWK returns the public key (RFC 7517).
func (k *Key) JWK() map[string]any {
	jwk := map[string]any{"kid": k.ID, "alg": k.Algorithm, "use": "sig"}
	switch k.Algorithm {
	case "RS256":
		jwk["kty"], jwk["n"], jwk["e"] = "RSA", encoded(k.RSA.N.Bytes()), encoded(big.NewInt(int64(k.RSA.E)).Bytes())
	case "ES256":
		point, err := k.EC.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		jwk["kty"], jwk["crv"], jwk["x"], jwk["y"] = "EC", "P-256", encoded(point[1:33]), encoded(point[33:])
	case "EdDSA":
		jwk["kty"], jwk["crv"], jwk["x"] = "OKP", "Ed25519", encoded(k.Ed.Public().(ed25519.PublicKey))
	case "HS256":
		jwk["kty"], jwk["k"] = "oct", encoded(k.HMAC)
	}
	return jwk
}

// Sign returns a token with claims. Header changes the members of the token's
// header; nil removes one.
func (k *Key) Sign(claims, header map[string]any) string {
	all := map[string]any{"alg": k.Algorithm, "kid": k.ID, "typ": "at+jwt"}
	for name, value := range header {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	text := func(of map[string]any) string {
		raw, err := json.Marshal(of)
		if err != nil {
			panic(err)
		}
		return encoded(raw)
	}
	return k.SignText(text(all) + "." + text(claims))
}

// SignText returns a token that begins with input, the encoded header and payload.
func (k *Key) SignText(input string) string {
	return input + "." + encoded(k.signature([]byte(input)))
}

func (k *Key) signature(input []byte) []byte {
	digest := sha256.Sum256(input)
	switch k.Algorithm {
	case "RS256":
		signature, err := rsa.SignPKCS1v15(rand.Reader, k.RSA, crypto.SHA256, digest[:])
		if err != nil {
			panic(err)
		}
		return signature
	case "RS512":
		digest := sha512.Sum512(input)
		signature, err := rsa.SignPKCS1v15(rand.Reader, k.RSA, crypto.SHA512, digest[:])
		if err != nil {
			panic(err)
		}
		return signature
	case "ES256":
		r, s, err := ecdsa.Sign(rand.Reader, k.EC, digest[:])
		if err != nil {
			panic(err)
		}
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature
	case "EdDSA":
		return ed25519.Sign(k.Ed, input)
	case "HS256":
		mac := hmac.New(sha256.New, k.HMAC)
		mac.Write(input)
		return mac.Sum(nil)
	}
	return nil
}

// Issuer publishes the keys of tokens. A test may change its fields with [Issuer.Change].
type Issuer struct {
	URL string

	mu       sync.Mutex
	state    IssuerState
	requests map[string]int
}

// IssuerState is what an issuer publishes now.
type IssuerState struct {
	Keys      []*Key
	Status    int            // of each response; 0 is 200
	Document  func() []byte  // replaces the document of keys
	Metadata  map[string]any // replaces members of the metadata
	OnlyOAuth bool           // only the metadata of RFC 8414 exists
}

// NewIssuer returns an issuer with keys.
func NewIssuer(address string, keys ...*Key) *Issuer {
	return &Issuer{URL: address, state: IssuerState{Keys: keys}, requests: map[string]int{}}
}

// Change changes the state.
func (i *Issuer) Change(change func(*IssuerState)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.state)
}

// Count returns the number of requests to a path.
func (i *Issuer) Count(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[path]
}

// Claims returns valid claims for an audience, with changes; nil removes a claim.
func (i *Issuer) Claims(audience string, changes map[string]any) map[string]any {
	now := time.Now().Unix()
	claims := map[string]any{"iss": i.URL, "aud": audience, "sub": "ada", "iat": now, "exp": now + 600}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// ServeHTTP implements [http.Handler].
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests[r.URL.Path]++
	state := i.state
	i.mu.Unlock()
	place := "/.well-known/openid-configuration"
	if state.OnlyOAuth {
		place = "/.well-known/oauth-authorization-server"
	}
	switch {
	case state.Status != 0:
		w.WriteHeader(state.Status)
	case r.URL.Path == place:
		metadata := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		for name, value := range state.Metadata {
			metadata[name] = value
		}
		reply(w, http.StatusOK, metadata)
	case r.URL.Path == "/keys" && state.Document != nil:
		_, _ = w.Write(state.Document())
	case r.URL.Path == "/keys":
		all := []any{}
		for _, key := range state.Keys {
			all = append(all, key.JWK())
		}
		reply(w, http.StatusOK, map[string]any{"keys": all})
	default:
		http.NotFound(w, r)
	}
}
