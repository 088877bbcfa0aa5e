// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// unreadableError is the error of a response that replaces an answer that could not be
// decoded.
type unreadableError struct {
	broken *protocolError
	sure   bool // it is certainly an answer, and does not only look like one
}

func (e *unreadableError) Error() string { return e.broken.Error() }

// unreadableAnswer returns an error response for text that is meant as an answer but is
// not a valid message: an object with an id and no method that is truncated, too deeply
// nested or violates the rules of JSON-RPC. It returns nil for any other text.
func unreadableAnswer(text []byte) *jsonrpc.Response {
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	outer := outline(text)
	_, sure := outer["jsonrpc"]
	_, result := outer["result"]
	_, failed := outer["error"]
	if _, request := outer["method"]; request || !sure && !result && !failed {
		return nil
	}
	var raw any
	if json.Unmarshal(outer["id"], &raw) != nil || raw == nil {
		return nil
	}
	id, err := jsonrpc.MakeID(raw)
	if err != nil {
		return nil
	}
	_, why := jsonrpc.DecodeMessage(text)
	if why == nil {
		return nil // cannot happen
	}
	reason := "an answer is not a JSON-RPC message: " + subprocess.CleanLine(textcut.Bytes(why.Error(), wire.MaxQuoted))
	return &jsonrpc.Response{ID: id, Error: &unreadableError{&protocolError{reason, true}, sure}}
}

// outline returns the JSON-RPC members of an object, as far as the text can be parsed
// and however deeply it nests. The value is nil if it is an object or a list.
func outline(text []byte) map[string][]byte {
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

// isFor reports whether a response is to be passed to the SDK. A response that replaces
// an undecodable answer fails the request with its ID, and is dropped if there is none.
// If the text only looks like an answer, it fails a request only if that is the only
// one in flight.
func (i *interceptor) isFor(response *jsonrpc.Response) bool {
	unreadable, ok := errors.AsType[*unreadableError](response.Error)
	if !ok {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	x := i.exchanges[response.ID]
	if x == nil || !unreadable.sure && len(i.exchanges) > 1 {
		return false
	}
	x.reject(response, unreadable.broken.what)
	return true
}

// reject makes an answer of the server an error that says how it broke the protocol.
func (x *exchange) reject(response *jsonrpc.Response, what string) {
	var reason error = &protocolError{what, true}
	x.rejected.Store(&reason)
	response.Result, response.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: what}
}
