// SPDX-License-Identifier: Apache-2.0

// Package outline finds the JSON-RPC members of texts that are not valid JSON.
package outline

import (
	"bytes"
	"encoding/json"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Of returns the JSON-RPC members of an object, as far as the text can be parsed
// and however deeply it nests. The value is nil if it is an object or a list.
func Of(text []byte) map[string][]byte {
	members := make(map[string][]byte)
	depth, key, last := 0, "", ""
	for i := 0; i < len(text); i++ {
		end := i + 1
		switch text[i] {
		case '"':
			if end = wire.StringEnd(text, i); end < 0 {
				return members
			}
			last = string(text[i+1 : max(i+1, min(end-1, i+20))])
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			key = "" // it was noted
		case ':':
			if depth == 1 {
				key = last
				note(members, key, nil)
			}
			continue
		case ',':
			if depth == 1 {
				key = ""
			}
			continue
		case ' ', '\t', '\r', '\n':
			continue
		default:
			end = len(text)
			if at := bytes.IndexAny(text[i:], ",:}] \t\r\n"); at > 0 {
				end = i + at
			}
		}
		if depth == 1 && key != "" {
			note(members, key, text[i:end])
			key = ""
		}
		i = end - 1
	}
	return members
}

// note stores the value of a member of JSON-RPC; it ignores other members.
func note(members map[string][]byte, key string, value []byte) {
	switch key {
	case "jsonrpc", "id", "method", "result", "error":
		members[key] = value
	}
}

// AnswerID returns the ID of a text that is meant as an answer of JSON-RPC: an object with an id
// and no method. It returns nil for any other text. Sure is false if the text only looks like one.
func AnswerID(text []byte) (id any, sure bool) {
	if len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	outer := Of(text)
	_, sure = outer["jsonrpc"]
	_, result := outer["result"]
	_, failed := outer["error"]
	if _, request := outer["method"]; request || !sure && !result && !failed || json.Unmarshal(outer["id"], &id) != nil {
		return nil, false
	}
	return id, sure
}
