// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"math"
	"slices"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

// Members finds the texts below members whose names suggest a secret, at any depth, and no
// others.
func TestMembers(t *testing.T) {
	type inner struct {
		APIKey string `json:"api_key"`
		Region string `json:"region"`
	}
	found := redact.Members(
		map[string]any{"token": "s-1", "name": "Ada", "list": []any{map[string]any{"password": "s-2"}, "plain"}},
		inner{"s-3", "eu"},
		map[string]any{"secrets": map[string]any{"name": "x"}, "authorization": "Bearer s-4", "tokens": 5, "password": []any{"s-5", nil}},
		"a text alone", nil, math.NaN(), // has no JSON form
	)
	for _, secret := range []string{"s-1", "s-2", "s-3", "s-4", "Bearer s-4", "s-5"} {
		if !slices.Contains(found, secret) {
			t.Errorf("%q is not among %q", secret, found)
		}
	}
	for _, plain := range []string{"Ada", "plain", "eu", "x", "a text alone", "5"} {
		if slices.Contains(found, plain) {
			t.Errorf("%q is among %q", plain, found)
		}
	}
}
