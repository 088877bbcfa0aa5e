// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Each byte, at each place of a string that is long or short, is judged as
// encoding/json does.
func TestValid(t *testing.T) {
	for _, length := range []int{0, 1, 7, 8, 9, 31, 32, 33, 40, 41, 100} {
		for place := range length + 1 {
			for b := range 256 {
				text := strings.Repeat("x", place) + string([]byte{byte(b)}) + strings.Repeat("y", length-place)
				for _, form := range []string{`"%s"`, `{"a":"%s","b":"\n"}`, `["\\%s\\"]`, `"%s`, `%s`} {
					line := fmt.Appendf(nil, form, text)
					if got, want := valid(line), json.Valid(line); got != want {
						t.Fatalf("valid(%q) is %t", line, got)
					}
				}
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	long := strings.Repeat("good morning ", 10)
	for _, seed := range []string{"", `"`, `"` + long + `"`, `{"` + long + `":"\"` + long + `\\"}`, long, `"` + long + `\`, `"` + long, `"` + long + "\n\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if got, want := valid(line), json.Valid(line); got != want {
			t.Errorf("valid(%q) is %t", line, got)
		}
		for _, text := range [][]byte{append([]byte(`"`+long), line...), append(line, long...)} {
			if got, want := valid(text), json.Valid(text); got != want {
				t.Errorf("valid(%q) is %t", text, got)
			}
		}
	})
}
