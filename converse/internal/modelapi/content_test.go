// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
)

// TestURLsAreText: a URL that is not UTF-8, or is very long, becomes a short line of text.
func TestURLsAreText(t *testing.T) {
	for _, url := range []string{"http://x/\xff", "data:image/png;base64," + strings.Repeat("A", 1<<20), "ftp://" + strings.Repeat("a", 1<<20)} {
		line := Renderer{NoImages: true}.Text([]canister.Content{canister.ImageContent{URL: url}})
		if !utf8.ValidString(line) || len(line) > 2100 {
			t.Errorf("%.100q becomes %d bytes: %.100q", url, len(line), line)
		}
	}
}
