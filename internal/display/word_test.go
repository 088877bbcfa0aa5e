// SPDX-License-Identifier: Apache-2.0

package display

import "testing"

// On Windows, paths have backslashes, cmd.exe passes single quotes on, and PowerShell runs $(…) between double ones.
func TestWord(t *testing.T) {
	for text, want := range map[string]struct{ unix, windows string }{
		`work.toml`:            {`work.toml`, `work.toml`},
		`C:\work\consort.toml`: {`'C:\work\consort.toml'`, `C:\work\consort.toml`},
		`C:\my work\`:          {`'C:\my work\'`, `"C:\my work\\"`},
		`it's`:                 {`'it'\''s'`, `"it's"`},
		`a "b'`:                {`'a "b'\'''`, `"a ""b'"`},
		`$(x y)`:               {`'$(x y)'`, "\"`$(x y)\""},
		`$’;calc;‘`:            {`'$’;calc;‘'`, "\"`$’;calc;‘\""},
		`” & calc`:             {`'” & calc'`, `"”” & calc"`},
		`@work`:                {`@work`, `"@work"`},
		`-x`:                   {`'-x'`, `"-x"`},
		``:                     {`''`, `""`},
		"a\u202e":              {"'a<U+202E>'", `"a<U+202E>"`},
	} {
		if unix, windows := word(text, false), word(text, true); unix != want.unix || windows != want.windows {
			t.Errorf("%s is %s and %s, want %s and %s", text, unix, windows, want.unix, want.windows)
		}
	}
}
