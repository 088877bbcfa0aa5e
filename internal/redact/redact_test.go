// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

func ExampleNew() {
	clean := redact.New("hunter2-hunter2")
	fmt.Println(clean("the password is hunter2-hunter2, or hunter2"))
	// Output: the password is [secret], or hunter2
}

const odd = `p"ss/w\rd<&>é+`

func TestText(t *testing.T) {
	asJSON, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	clean := redact.New("  padded-one\n", "short", "padded-one-longer", odd, "first line\nsecond line\nlast")
	for text, want := range map[string]string{
		"":                                    "",
		"short":                               "short",
		"a padded-one b padded-onepadded-one": "a [secret] b [secret][secret]",
		"padded-one-longer":                   "[secret]",
		"<" + odd + ">":                       "<[secret]>",
		url.QueryEscape(odd):                  "[secret]",
		url.PathEscape(odd):                   "[secret]",
		string(asJSON):                        `"[secret]"`,
		fmt.Sprintf("%q", odd):                `"[secret]"`,
		`"p\"ss\/w\\rd<&>é+"`:                 `"[secret]"`,
		"Basic " + base64.StdEncoding.EncodeToString([]byte(odd)):    "Basic [secret]",
		"Basic " + base64.RawURLEncoding.EncodeToString([]byte(odd)): "Basic [secret]",
		"first line\nsecond line\nlast":                              "[secret]",
		`"first line\nsecond line\nlast"`:                            `"[secret]"`,
		"a p\"ss/w… (9 bytes)":                                       "a [secret]… (9 bytes)",
		"…-longer, p\"s… padd…one-longer":                            "…[secret], p\"s… [secret]…[secret]",
		"padded-one…":                                                "[secret]…",
		strings.Repeat("padd…", 4000):                                strings.Repeat("padd…", 4000),
		"1: first line\n2: second line":                              "1: [secret]\n2: [secret]",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if redact.New() != nil || redact.New("", "       short       ") != nil {
		t.Error("there is something to look for")
	}
}

// Other languages escape other characters, and with other digits.
func TestEscapesOfOtherLanguages(t *testing.T) {
	for _, test := range []struct{ secret, text string }{
		{"abc+def/ghi==1", `abc\u002Bdef/ghi==1`}, // System.Text.Json
		{"abc+def/ghi==1", `abc\u002bdef/ghi==1`},
		{"abc+def/ghi==1", "abc%2bdef%2fghi%3d%3d1"}, // HttpUtility
		{"abc+def/ghi==1", "abc+def%2fghi==1"},
		{"wJalr/K7MD+ENG", "wJalr/K7MD%2BENG"},                         // Python's quote
		{"correct horse+battery", "correct%20horse%2Bbattery"},         // PHP's rawurlencode, .NET
		{"correct horse+battery!(*)", "correct%20horse%2Bbattery!(*)"}, // JavaScript
		{"pässwort-1", `p\u00e4sswort-1`},                              // Python, PHP
		{"pässwort-1", `p\u00E4sswort-1`},
		{"pässwort/1", `p\u00e4sswort\/1`}, // PHP
		{"pässwort-1", "p%c3%a4sswort-1"},
		{"a<b>&'`\"c+\\ä😀", `a\u003Cb\u003E\u0026\u0027\u0060\u0022c\u002B\\\u00E4\uD83D\uDE00`},
		{"pass\"😀word", `pass\"\ud83d\ude00word`},
	} {
		if got := redact.New(test.secret)("<" + test.text + ">"); got != "<[secret]>" {
			t.Errorf("%s becomes %s", test.text, got)
		}
		var stream redact.Stream
		grown := redact.NewGrowing(test.secret)
		got := ""
		for i := range len(test.text) {
			got += stream.Next(test.text[i:i+1], grown.Part)
		}
		if got += stream.Rest(grown.Part); got != "[secret]" {
			t.Errorf("%s becomes %s in pieces", test.text, got)
		}
	}
}

func TestJSON(t *testing.T) {
	clean := redact.New(odd, "hunter2-hunter2", "1234567890", `{"a":"b","c":`)
	for raw, want := range map[string]string{
		``:                            ``,
		`{"b": 1.50, "a":"\u0061\/"}`: `{"b": 1.50, "a":"\u0061\/"}`,
		`"hunter2-hunter2"`:           `"[secret]"`,
		`{"hunter2-hunter2":["hunter2-hunter2 ",1]}`: `{"[secret]":["[secret] ",1]}`,
		`["\u0068unter2-\u0068unter2","<\u0026>"]`:   `["[secret]","<\u0026>"]`,
		`["p\"ss\/w\\rd\u003c&>\u00e9+"]`:            `["[secret]"]`,
		`[1234567890]`:                               `"[[secret]]"`,
		`{"a":"b","c":1}`:                            `"[secret]1}"`,
		`"hunter2-hunter2`:                           `"\"[secret]"`,
		`"\`:                                         `"\`,
	} {
		before := []byte(raw)
		if got := redact.JSON(before, clean); string(got) != want {
			t.Errorf("%s becomes %s, want %s", raw, got, want)
		}
		if string(before) != raw {
			t.Errorf("%s was changed into %s", raw, before)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":["hunter2-hunter2",12345678]}`))
	f.Add([]byte(`"\u0068unter2-hunter2\`))
	clean := redact.New("hunter2-hunter2", "12345678", `":"":"":`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		cleaned := redact.JSON(raw, clean)
		if json.Valid(raw) && !json.Valid(cleaned) {
			t.Errorf("%q becomes %q", raw, cleaned)
		}
		var buffer bytes.Buffer
		if json.Compact(&buffer, cleaned) == nil && strings.Contains(buffer.String(), "hunter2-hunter2") {
			t.Errorf("%q becomes %q", raw, cleaned)
		}
	})
}

func TestError(t *testing.T) {
	clean := redact.New("hunter2-hunter2")
	plain := errors.New("nothing")
	if redact.Error(plain, clean) != plain || redact.Error(nil, clean) != nil {
		t.Error("an error without a secret does not stay as it is")
	}
	inner := &fs.PathError{Op: "open", Path: "hunter2-hunter2", Err: fs.ErrNotExist}
	err := redact.Error(fmt.Errorf("reading: %w", inner), clean)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, err := range []error{err, fmt.Errorf("outer: %w", err), errors.Join(err, err)} {
			if text := fmt.Sprintf(verb, err); strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s: %s", verb, text)
			}
		}
	}
	var path *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) || errors.Unwrap(err) != nil {
		t.Error("the chain is not there, or shows too much")
	}
}

// What was sent to a server is found from 6 bytes on, and without its scheme.
func TestSent(t *testing.T) {
	clean := redact.Sent("Bearer abcdef", "1234567", "short", "")
	if got, want := clean("abcdef, Bearer abcdef, 1234567, short"), "[secret], [secret], [secret], short"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := redact.Sent("short")("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}
