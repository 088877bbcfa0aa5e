// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/consort-go/consort/internal/near"
)

// nearest returns the candidate that is most similar to word, or "" if none is similar.
// At most a third of the longer word's letters, rounded, may differ.
func nearest(word string, candidates []string) string {
	if len(word) > maxKeyShown {
		return ""
	}
	best, bestDistance := "", 0
	for _, candidate := range candidates {
		d := near.Distance(normal(word), normal(candidate))
		if d > (max(len(word), len(candidate))+1)/3 {
			continue
		}
		if best == "" || d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// normal removes differences of spelling that users mix up: callTimeout, call-timeout.
func normal(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}
