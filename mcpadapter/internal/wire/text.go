// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// MaxQuoted bounds how many bytes of the other side's text an error or a log entry
// quotes.
const MaxQuoted = 200

// IDText returns the ID of a request as text.
func IDText(id jsonrpc.ID) string {
	if !id.IsValid() {
		return ""
	}
	return textcut.Bytes(fmt.Sprint(id.Raw()), MaxQuoted)
}

// StringEnd returns the index after the string that begins at i; -1 if the string does
// not end.
func StringEnd(text []byte, i int) int {
	for end := i + 1; ; {
		n := bytes.IndexByte(text[end:], '"')
		if n < 0 {
			return -1
		}
		end += n + 1
		escapes := end - 2
		for escapes > i && text[escapes] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 { // an even number of backslashes precedes the quote
			return end
		}
	}
}

// Trim removes white space and the byte order mark that .NET programs write first.
func Trim(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
}
