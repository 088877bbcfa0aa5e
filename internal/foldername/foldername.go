// SPDX-License-Identifier: Apache-2.0

// Package foldername names the folders of conversations. Their identities may contain
// characters that a file system does not allow or does not distinguish.
package foldername

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var (
	// plain matches identities that are valid folder names on every system. They are in
	// lower case, because many systems do not distinguish A and a.
	plain = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9_-])?$`)
	// device matches names that Windows reserves.
	device = regexp.MustCompile(`^(con|prn|aux|nul|conin|conout|com[0-9]|lpt[0-9])(\..*)?$`)
	other  = regexp.MustCompile(`[^a-z0-9]+`)
	hashed = regexp.MustCompile(`^x[a-z0-9-]{0,24}~[0-9a-f]{32}$`)
)

// IsPlain reports whether the name of a conversation's folder is its identity.
func IsPlain(conversation string) bool {
	return plain.MatchString(conversation) && !device.MatchString(conversation)
}

// IsPossible reports whether Of can have returned a name.
func IsPossible(name string) bool { return IsPlain(name) || hashed.MatchString(name) }

// Of returns the name of a conversation's folder: the identity, or its beginning with a
// hash. It begins with a letter or a digit, and different identities have different
// names.
func Of(conversation string) string {
	if IsPlain(conversation) {
		return conversation
	}
	sum := sha256.Sum256([]byte(conversation))
	reminder := strings.Trim(other.ReplaceAllString(strings.ToLower(conversation), "-"), "-")
	return "x" + reminder[:min(len(reminder), 24)] + "~" + hex.EncodeToString(sum[:16])
}
