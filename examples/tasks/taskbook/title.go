// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/invoker"
)

// MaxTitle is the maximum length of a title in characters, without surrounding white
// space. A character is a Unicode code point; combining characters count separately.
const MaxTitle = 500

// cleanTitle returns the title without surrounding white space.
func cleanTitle(title string) (string, error) {
	title = strings.TrimSpace(title)
	switch n := utf8.RuneCountInString(title); {
	case n == 0:
		return "", invoker.Invalid("/title", "the title is empty")
	case n > MaxTitle:
		return "", invoker.Invalid("/title", "the title has %d characters; at most %d are allowed", n, MaxTitle)
	case !utf8.ValidString(title):
		return "", invoker.Invalid("/title", "the title is not UTF-8")
	case !strings.ContainsFunc(title, visible):
		return "", invoker.Invalid("/title", "the title has no visible character")
	}
	return title, nil
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
