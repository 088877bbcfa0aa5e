// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

func TestURI(t *testing.T) {
	for uri, want := range map[string]string{
		"":                                     "",
		"file:///a/b?x=1#y":                    "file:///a/b?x=1#y",
		"no uri at all, ?":                     "no uri at all, ?",
		"https://me:pass@h:1/a@b?q=c@d":        "https://[secret]@h:1/a@b?q=c@d",
		"https://token@h":                      "https://[secret]@h",
		"https://a@b:c@h/":                     "https://[secret]@h/",
		"https://h/a?X=1&api_key=k&sig=s&b#f?": "https://h/a?X=1&api_key=[secret]&sig=[secret]&b#f?",
		"https://h/?X-Amz-Sig%6Eature=s&X-Amz-Security-Token=t=&%zz=u": "https://h/?X-Amz-Sig%6Eature=[secret]&X-Amz-Security-Token=[secret]&%zz=[secret]",
		"mailto:me@h": "mailto:me@h",
	} {
		if got := redact.URI(uri); got != want {
			t.Errorf("%q becomes %q, want %q", uri, got, want)
		}
	}
}
