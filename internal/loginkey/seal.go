// SPDX-License-Identifier: Apache-2.0

package loginkey

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// header begins a sealed text; the nonce and the encrypted text follow.
const header = "consort login 1\n"

// Errors of [Open].
var (
	ErrForeign = errors.New("it is not a sealed text")
	ErrSealed  = errors.New("it is damaged or was written with another key")
)

// Seal encrypts a text with AES-256-GCM. The name of the place where it is stored is
// authenticated too, so that two sealed texts cannot be exchanged.
func Seal(key []byte, name string, text []byte) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return box.Seal(append([]byte(header), nonce...), nonce, text, []byte(name)), nil
}

// Open decrypts what [Seal] has returned.
func Open(key []byte, name string, sealed []byte) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	rest, found := bytes.CutPrefix(sealed, []byte(header))
	if !found || len(rest) < box.NonceSize() {
		return nil, ErrForeign
	}
	text, err := box.Open(nil, rest[:box.NonceSize()], rest[box.NonceSize():], []byte(name))
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Name returns the name under which something is stored that the parts identify. It says
// nothing about them to someone who cannot guess them.
func Name(parts ...string) string {
	name := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(name[:16])
}
