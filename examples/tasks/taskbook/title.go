// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/invoker"
)

// MaxTitle is the length of the longest title, in characters (Unicode code
// points; one that combines with another counts by itself), without white space
// around it.
const MaxTitle = 500

// cleanTitle returns the title without white space around it.
func cleanTitle(title string) (string, error) {
	title = strings.TrimSpace(title)
	switch n := utf8.RuneCountInString(title); {
	case n == 0:
		return "", invoker.Invalid("/title", "the title is empty")
	case n > MaxTitle:
		return "", invoker.Invalid("/title", "the title has %d characters; %d are the most", n, MaxTitle)
	case !utf8.ValidString(title):
		return "", invoker.Invalid("/title", "the title is not UTF-8")
	case !strings.ContainsFunc(title, visible):
		return "", invoker.Invalid("/title", "the title has no character that can be seen")
	}
	return title, nil
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
