// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Success decodes the usual message, a successful response, because the SDK's decoder
// allocates 32 KiB for each message. text is valid JSON. It returns nil if the message is
// anything else, or is written in an unusual form.
func Success(text []byte) *jsonrpc.Response {
	var version, id, result []byte
	for rest, more := bytes.CutPrefix(Trim(text), []byte{'{'}); more; {
		name, value, after := nextMember(rest)
		var to *[]byte
		switch string(name) {
		case `"jsonrpc"`:
			to = &version
		case `"id"`:
			to = &id
		case `"result"`:
			to = &result
		}
		if to == nil || *to != nil {
			return nil
		}
		*to, rest, more = value, after, len(after) > 0
	}
	if string(version) != `"2.0"` || len(result) == 0 || result[0] != '{' {
		return nil
	}
	response := &jsonrpc.Response{Result: bytes.Clone(result)}
	if n, err := strconv.ParseInt(string(id), 10, 32); err == nil {
		response.ID, _ = jsonrpc.MakeID(float64(n)) // numbers and strings are IDs
	} else if len(id) > 2 && id[0] == '"' && utf8.Valid(id) && bytes.IndexByte(id, '\\') < 0 {
		response.ID, _ = jsonrpc.MakeID(string(id[1 : len(id)-1]))
	} else {
		return nil
	}
	return response
}
