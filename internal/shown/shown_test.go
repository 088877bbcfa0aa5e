// SPDX-License-Identifier: Apache-2.0

package shown_test

import (
	"testing"

	"github.com/consort-go/consort/internal/shown"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":           "plain\ttext\n",
		"\x1b]0;title\a\x1b[2Jno": "]0;title[2Jno",
		"over\rwritten\b":         "overwritten",
		"a\u202etxt.exe":          "atxt.exe",
		"\u009b31mred":            "31mred",
		"grüße 東京":                "grüße 東京",
	} {
		if got := shown.Text(text); got != want {
			t.Errorf("shown.Text(%q) = %q, want %q", text, got, want)
		}
	}
}
