// SPDX-License-Identifier: Apache-2.0

package jsonobject_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"
)

// FuzzText compares a member with what encoding/json writes. The seeds are every ASCII
// character, and strings that need an escape or a replacement.
func FuzzText(f *testing.F) {
	for c := range rune(0x80) {
		f.Add("a" + string(c) + "z")
	}
	for _, s := range []string{"", "\u2028", "ü", "\xff", `a\u0041`, "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
		quoted := bytes.TrimSuffix(want.Bytes(), []byte("\n"))
		w := jsonobject.New()
		w.Text(s, s)
		if got, want := string(w.End()), "{"+string(quoted)+":"+string(quoted)+"}"; got != want {
			t.Errorf("the object is %s, want %s", got, want)
		}
	})
}
