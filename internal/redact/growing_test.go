// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"fmt"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

func TestGrowing(t *testing.T) {
	g := redact.NewGrowing()
	if got := g.Text("first-secret"); got != "first-secret" {
		t.Errorf("without secrets: %q", got)
	}
	g.Add("first-secret")
	g.Add("second-secret", "third-secret")
	if got := g.Text("first-secret second-secret third-secret"); got != "[secret] [secret] [secret]" {
		t.Errorf("after two additions: %q", got)
	}
	for i := range 258 {
		g.Add(fmt.Sprintf("token-number-%d", i), "third-secret")
	}
	if got := g.Text("second-secret third-secret token-number-0 token-number-1."); got != "second-secret [secret] token-number-0 [secret]." {
		t.Errorf("the oldest are forgotten, and only they: %q", got)
	}
}
