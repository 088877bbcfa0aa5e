// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sameVerdict fails unless valid says of a text what encoding/json says.
func sameVerdict(t *testing.T, text []byte) {
	t.Helper()
	if got, want := valid(text), json.Valid(text); got != want {
		t.Errorf("valid(%q) is %t", text, got)
	}
}

// goldenLines are the lines of all the logs that were ever written for tests.
func goldenLines(tb testing.TB) [][]byte {
	var lines [][]byte
	paths, _ := filepath.Glob("testdata/*.jsonl")
	more, _ := filepath.Glob("testdata/*/*.jsonl")
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSpace(text), []byte("\n"))...)
	}
	if len(lines) == 0 {
		tb.Fatal("there are no golden lines")
	}
	return lines
}

// odd are texts at the border of valid JSON.
func odd() []string {
	texts := strings.Fields(`0 -0 00 01 -01 - + +1 1. .1 1.0 1.e1 1.0e 1e 1e+ 1e- 1e+-1 1e-+1 1e+1 1E-10 1e1.0 1ee1 --1 1e999 -1.5e+30 0x1 1_0 Inf NaN
		true false null tru truex nul True TRUE nulll t f n [ ] { } [] {} [} {] [[]] [[] [,] [1,] [,1] [1,2] [1,,2] [1;2] [1:2]
		{"a":1} {"a":1,} {,"a":1} {"a":1,"a":2} {"a"} {"a":} {"a",1} {a:1} {1:2} {"a":1"b":2} {"a":1}{"b":2} {"a":{"b":[{}]}} {"":""} {"a"::1}
		"" " "\" "\\" "\\\" "\/\b\f\n\r\t" "\a" "\U0041" "\u" "\u0" "\u00" "\u004" "\u0041" "\u00g1" "\uD83C\udf27" "\ud83c" "\ud83cx" "\u{41}" "\x41" "\'" '1' 1/**/ //1`)
	texts = append(texts, "", " ", "\n", " 1 ", "\t[ 1 , 2 ]\r\n", "{ \"a\" : 1 , \"b\" : [ ] }", "1 2", "\v1", "1\f",
		"\u00a01", "\ufeff1", "\x00", "1\x00", "\x001",
		"\"\x1f\"", "\"\x7f\"", "\"\x80\"", "\"\xff\xfe\"", "\"\xed\xa0\x80\"", "\"a\nb\"", "\"\x00\"", "\"\u2028\"", "\"é漢🌧\"",
		"\xff", "tr\x00e", "{\"\xff\":1}")
	for _, depth := range []int{9999, 10000, 10001, 10002, 20000} {
		open, shut := strings.Repeat("[", depth), strings.Repeat("]", depth)
		texts = append(texts, open+shut, open+"1"+shut, open, open+shut[1:],
			strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth), strings.Repeat(`[{"a":`, depth/2)+strings.Repeat("}]", depth/2))
	}
	return texts
}

// Of each text on the edge, of each line with one byte changed or gone, and of
// each beginning of it, valid says what encoding/json says.
func TestValid(t *testing.T) {
	for _, text := range odd() {
		sameVerdict(t, []byte(text))
		sameVerdict(t, []byte(`[`+text+`]`))
		sameVerdict(t, []byte(`{"a": `+text+` }`))
	}
	for _, line := range goldenLines(t) {
		if !valid(line) {
			t.Errorf("not valid: %s", line)
		}
		line = line[:min(len(line), 400)]
		for i := range line {
			sameVerdict(t, line[:i])
			sameVerdict(t, append(line[:i:i], line[i+1:]...))
			for _, b := range []byte("\x00\x1f\n \"\\{}[]:,u0-e\x80") {
				changed := bytes.Clone(line)
				changed[i] = b
				sameVerdict(t, changed)
			}
		}
	}
}

// The same holds for each byte, at each position of a short or long string, also after a
// backslash and within a \u escape.
func TestValidStrings(t *testing.T) {
	for _, length := range []int{0, 1, 7, 8, 9, 17, 40} {
		for place := range length + 1 {
			for b := range 256 {
				text := strings.Repeat("a", place) + string([]byte{byte(b)}) + strings.Repeat("0", length-place)
				for _, form := range []string{`"%s"`, `{"%s":"\n"}`, `["\\%s\\"]`, `"\%s"`, `"\u%s"`, `"%s`, `%s`} {
					sameVerdict(t, fmt.Appendf(nil, form, text))
				}
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, text := range odd() {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	for _, line := range goldenLines(f) {
		f.Add(line)
	}
	long := strings.Repeat("good morning ", 5)
	f.Fuzz(func(t *testing.T, text []byte) {
		sameVerdict(t, text)
		sameVerdict(t, fmt.Appendf(nil, `{"%s":["%s%s"]}`, text, long, text))
		sameVerdict(t, fmt.Appendf(nil, `[%s,"\u%s"]`, text, text))
	})
}
