// SPDX-License-Identifier: Apache-2.0

package jwtsign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// What is signed with a key of each kind is verified by an independent library.
func TestSign(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[jose.SignatureAlgorithm]crypto.Signer{jose.RS256: rsaKey, jose.ES256: ecKey, jose.EdDSA: edKey} {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseKey(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
		if err != nil {
			t.Fatal(err)
		}
		token, err := Sign(parsed, map[string]any{"kid": "k"}, map[string]any{"sub": "ada"})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{algorithm})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := signed.Verify(key.Public())
		header := signed.Signatures[0].Protected
		if string(claims) != `{"sub":"ada"}` || header.KeyID != "k" || header.ExtraHeaders["typ"] != "JWT" || err != nil {
			t.Errorf("%s: %s, %+v, %v", algorithm, claims, header, err)
		}
	}
}

// The error of a key that cannot be read has nothing of it.
func TestDamagedKeys(t *testing.T) {
	for _, text := range []string{"", "secret-text", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"} {
		if _, err := ParseKey(text); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
