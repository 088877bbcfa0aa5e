// SPDX-License-Identifier: Apache-2.0

// Package jwtsign signs JSON Web Tokens (RFC 7519) with the private key of a client.
package jwtsign

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
)

// ParseKey returns the private key in a PEM text: RSA, ECDSA with P-256, or Ed25519.
func ParseKey(text string) (crypto.Signer, error) {
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

// Sign returns a JWT with claims. header has members in addition to alg, and typ if it is not
// JWT.
func Sign(key crypto.Signer, header, claims map[string]any) (string, error) {
	all := map[string]any{"alg": "RS256", "typ": "JWT"}
	switch key.(type) {
	case *ecdsa.PrivateKey:
		all["alg"] = "ES256"
	case ed25519.PrivateKey:
		all["alg"] = "EdDSA"
	}
	for name, value := range header {
		all[name] = value
	}
	head, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	input := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(payload)
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
