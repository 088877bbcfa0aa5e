// SPDX-License-Identifier: Apache-2.0

// Package foldername names the folders of conversations, whose identities may have
// characters that a file system does not allow or does not tell apart.
package foldername

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var (
	// plain are identities that are folders' names on every system: in lower
	// case, since many take A and a for the same.
	plain = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9_-])?$`)
	// device are names that Windows keeps for itself.
	device = regexp.MustCompile(`^(con|prn|aux|nul|conin|conout|com[0-9]|lpt[0-9])(\..*)?$`)
	other  = regexp.MustCompile(`[^a-z0-9]+`)
)

// IsPlain reports whether a conversation's folder has its identity for a name.
func IsPlain(conversation string) bool {
	return plain.MatchString(conversation) && !device.MatchString(conversation)
}

// Of returns the name of a conversation's folder: the identity, or the beginning of
// it with a hash. It begins with a letter or a digit, and the names of two
// identities differ.
func Of(conversation string) string {
	if IsPlain(conversation) {
		return conversation
	}
	sum := sha256.Sum256([]byte(conversation))
	reminder := strings.Trim(other.ReplaceAllString(strings.ToLower(conversation), "-"), "-")
	return "x" + reminder[:min(len(reminder), 24)] + "~" + hex.EncodeToString(sum[:16])
}
