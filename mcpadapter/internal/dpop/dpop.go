// SPDX-License-Identifier: Apache-2.0

// Package dpop proves to servers that a client has the private key that its tokens are bound
// to (RFC 9449, OAuth 2.0 Demonstrating Proof of Possession).
package dpop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/jwtsign"
)

// Algorithm is the only algorithm of proofs (RFC 7518, section 3.4).
const Algorithm = "ES256"

// Scheme is the scheme of authentication, and the type of tokens (RFC 9449, section 7.1).
const Scheme = "DPoP"

// NonceDemanded is the error of servers that want a nonce (RFC 9449, sections 8 and 9).
const NonceDemanded = "use_dpop_nonce"

// Key is a private key of ECDSA with P-256. It prints nothing of itself.
type Key struct {
	private *ecdsa.PrivateKey
	x, y    string // the point, in base64url (RFC 7518, section 6.2.1)
}

// NewKey returns the text of a new key; see [ParseKey].
func NewKey() (string, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	raw, err := private.Bytes()
	return encode(raw), err
}

// ParseKey returns the key of a text, which is the private key as the member d of a JWK has it
// (RFC 7518, section 6.2.2.1).
func ParseKey(text string) (*Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errKey
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, errKey
	}
	point, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, errKey
	}
	return &Key{private: private, x: encode(point[1:33]), y: encode(point[33:])}, nil
}

// errKey says nothing about the key.
var errKey = errors.New("the key that the tokens are bound to cannot be read: log in again")

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return encode(sum[:])
}

// String hides the key.
func (k *Key) String() string { return "[hidden]" }

// GoString hides the key.
func (k *Key) GoString() string { return "[hidden]" }

// Thumbprint identifies the public key (RFC 7638), as in jkt and dpop_jkt (RFC 9449, sections 6
// and 10).
func (k *Key) Thumbprint() string { return thumbprint(k.x, k.y) }

func thumbprint(x, y string) string {
	return digest(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`)
}

// Proof returns a new proof for a request (RFC 9449, section 4.2). token is empty for requests
// to a token endpoint, and nonce if the server has not given one.
func (k *Key) Proof(method string, to *url.URL, token, nonce string) (string, error) {
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": target(to), "iat": time.Now().Unix()}
	if token != "" {
		claims["ath"] = digest(token)
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "x": k.x, "y": k.y}
	return jwtsign.Sign(k.private, map[string]any{"typ": "dpop+jwt", "jwk": jwk}, claims)
}

// target returns a URL without user, query and fragment, normalized as servers compare it (RFC
// 3986, section 6.2.2.1 and 6.2.3).
func target(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := u.Port(); port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + path
}

// Supported reports whether a list of algorithms has [Algorithm]; a server without a list leaves it
// open.
func Supported(algorithms []string) bool {
	return len(algorithms) == 0 || slices.Contains(algorithms, Algorithm)
}

// demandsNonce reports whether a server refused a request because its proof had no valid nonce
// (RFC 9449, section 9).
func demandsNonce(r *http.Response) bool {
	return r.StatusCode == http.StatusUnauthorized && slices.ContainsFunc(r.Header.Values("WWW-Authenticate"), func(challenge string) bool {
		return strings.Contains(challenge, NonceDemanded)
	})
}
