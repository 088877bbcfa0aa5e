// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// longest is the length in bytes of the longest word that is compared; what is longer is
// data, such as an encoded file.
const longest = 64

// words yields the words of a text in lower case, without accents. Identifiers are split:
// readTextFile and read_text_file are three words each, and GitHub is git, hub and github.
// Each character of Chinese and Japanese text is a word, as those scripts do not separate
// words.
func words(text string, yield func(word string)) {
	if !isASCII(text) {
		text = withoutMarks(text)
	}
	start := -1
	for i, r := range text {
		switch isWord := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			identifier(text, start, i, yield)
			yield(string(r))
			start = -1
		case !isWord:
			identifier(text, start, i, yield)
			start = -1
		case start < 0:
			start = i
		}
	}
	identifier(text, start, len(text), yield)
}

// runs yields the pieces of a text that have words: they are separated by the ASCII characters
// that are neither letters nor digits. A text has the words of its runs. A plain run is one
// word, as words yields it.
func runs(text string, yield func(run string, plain bool)) {
	start, kinds := -1, kind(0)
	for i := range len(text) {
		switch k := kindOf[text[i]]; {
		case k != separator:
			if start < 0 {
				start = i
			}
			kinds |= k
		case start >= 0:
			yield(text[start:i], kinds == lower && i-start <= longest)
			start, kinds = -1, 0
		}
	}
	if start >= 0 {
		yield(text[start:], kinds == lower && len(text)-start <= longest)
	}
}

// kind is what a byte is in a word.
type kind byte

const (
	separator kind = 0
	lower     kind = 1 // a small letter or a digit
	special   kind = 2 // a capital letter, or a part of a character that is not ASCII
)

var kindOf = func() (kinds [256]kind) {
	for c := range kinds {
		switch r := rune(c); {
		case c >= utf8.RuneSelf || unicode.IsUpper(r):
			kinds[c] = special
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			kinds[c] = lower
		}
	}
	return kinds
}()

// identifier yields text[start:end] and, if it is written like readFile or HTTPServer, its
// parts. It yields nothing if start is negative.
func identifier(text string, start, end int, yield func(word string)) {
	if start < 0 || end-start > longest {
		return
	}
	part, before := start, rune(0)
	for i, r := range text[start:end] {
		at := start + i
		if at > part && unicode.IsUpper(r) && (unicode.IsLower(before) || lowerFollows(text[at+utf8.RuneLen(r):end])) {
			yield(strings.ToLower(text[part:at]))
			part = at
		}
		before = r
	}
	if part > start {
		yield(strings.ToLower(text[part:end]))
	}
	yield(strings.ToLower(text[start:end]))
}

// lowerFollows reports whether the rest of an identifier goes on as a new word: the S of
// HTTPServer begins one, the S of APIs does not.
func lowerFollows(rest string) bool {
	first, size := utf8.DecodeRuneInString(rest)
	second, _ := utf8.DecodeRuneInString(rest[size:])
	return unicode.IsLower(first) && unicode.IsLower(second)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// withoutMarks returns text in which "café" is "cafe" and a wide "Ａ" is "A".
func withoutMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
}

// stem returns what the forms of a word have in common: file, files, filed and filing
// are one.
func stem(word string) string {
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// empty are words that say nothing about a tool: they are not searched for.
var empty = set("a about after all also am an and any are as at be been before but by can could did do does doing for from had has have " +
	"he her his how i if in into is it its just like me my need no not now of on one or our out over please she should show so some " +
	"that the their them then there these they this those to tool tools up us use used using want was we were what when where which who " +
	"will with would you your")

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}
