// SPDX-License-Identifier: Apache-2.0

package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"time"
)

const (
	authKey         = "private_key_jwt" // RFC 7591, section 2, and OpenID Connect Core 1.0, section 9
	assertionType   = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionExpiry = 2 * time.Minute
)

// parseKey returns the private key in a PEM text: RSA, ECDSA with P-256, or Ed25519.
func parseKey(text Secret) (crypto.Signer, error) {
	wrong := errors.New("the client key is not a private key in PEM: RSA, ECDSA with P-256, or Ed25519")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, wrong
	}
	var parsed any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, wrong // an error of the parser could contain a part of the key
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, wrong
}

// authenticate adds a signed assertion of the client to a request (RFC 7523, section 2.2).
// Its audience is the issuer, so that no other authorization server accepts it.
func (c *Client) authenticate(form url.Values, l *Login) error {
	if c.signer == nil {
		return errors.New("the login was made with a client key, which the configuration does not have any more")
	}
	now := time.Now()
	assertion, err := sign(c.signer, map[string]any{
		"iss": l.ClientID, "sub": l.ClientID, "aud": l.Issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionExpiry).Unix(),
	})
	if err != nil {
		return err
	}
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", assertion)
	return nil
}

// sign returns a JWT (RFC 7519).
func sign(key crypto.Signer, claims map[string]any) (string, error) {
	algorithm := "RS256"
	switch key.(type) {
	case *ecdsa.PrivateKey:
		algorithm = "ES256"
	case ed25519.PrivateKey:
		algorithm = "EdDSA"
	}
	header, _ := json.Marshal(map[string]string{"alg": algorithm, "typ": "JWT"}) // can always be encoded, as the claims
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	input := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature, err := signature(key, []byte(input))
	if err != nil {
		return "", errors.New("the client key cannot sign")
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// signature signs as RFC 7518, section 3, and RFC 8037 define.
func signature(key crypto.Signer, input []byte) ([]byte, error) {
	digest := sha256.Sum256(input)
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return nil, err
		}
		both := make([]byte, 64)
		r.FillBytes(both[:32])
		s.FillBytes(both[32:])
		return both, nil
	case ed25519.PrivateKey:
		return ed25519.Sign(key, input), nil
	}
	return key.Sign(rand.Reader, digest[:], crypto.SHA256)
}
