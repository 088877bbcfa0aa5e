// SPDX-License-Identifier: Apache-2.0

// Package questiontext carries the original text of a server's question through the SDK, which
// would decode it into maps.
package questiontext

import (
	"encoding/base64"
	"encoding/json"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Members of a question's _meta with its original text in base64: the schema of a form, to
// keep the server's order of its fields, and the whole of a request to a model.
const (
	FormKey     = "io.github.consort-go/requested-schema"
	SamplingKey = "io.github.consort-go/sampling"
)

// Keep copies the text of a question into its _meta, if request is a question.
func Keep(request *jsonrpc.Request) {
	request.Params = withText(request.Method, request.Params)
}

// KeepAll does the same for the questions in a result that asks for another round
// (MCP 2026-07-28, SEP-2322), and returns how many there are. If the result has only a state,
// which the client sends back in its next request, it gets an empty list of questions: without
// one, the SDK makes no other round.
func KeepAll(result json.RawMessage) (kept json.RawMessage, asked int) {
	m, err := wire.Members(result)
	if err != nil {
		return result, 0
	}
	if m["requestState"] != nil && isMissing(m["inputRequests"]) {
		m["inputRequests"] = json.RawMessage(`{}`)
	}
	questions, err := wire.Members(m["inputRequests"])
	if err != nil {
		return result, 0
	}
	for id, raw := range questions {
		question, err := wire.Members(raw)
		var method string
		if err != nil || json.Unmarshal(question["method"], &method) != nil {
			continue
		}
		question["params"] = withText(method, question["params"])
		questions[id], _ = json.Marshal(question) // cannot fail: it was decoded from JSON
	}
	m["inputRequests"], _ = json.Marshal(questions)
	if kept, err = json.Marshal(m); err != nil {
		return result, len(questions) // cannot happen: all of it was decoded
	}
	return kept, len(questions)
}

func isMissing(value json.RawMessage) bool { return value == nil || string(value) == "null" }

// withText returns the parameters of a question with its text in their _meta. If they
// cannot be decoded, it returns them unchanged and leaves the error to the SDK.
func withText(method string, params json.RawMessage) json.RawMessage {
	key := map[string]string{"elicitation/create": FormKey, "sampling/createMessage": SamplingKey}[method]
	if key == "" {
		return params
	}
	m, err := wire.Members(params)
	if err != nil {
		return params
	}
	text := params
	if key == FormKey {
		text = m["requestedSchema"]
	}
	if text == nil {
		return params
	}
	meta, err := wire.Members(m["_meta"])
	if err != nil {
		meta = make(map[string]json.RawMessage)
	}
	if key == FormKey && !isUsable(text) {
		m["requestedSchema"] = unusable
	}
	meta[key], _ = json.Marshal([]byte(text)) // base64, because as a string it could grow sixfold
	m["_meta"], _ = json.Marshal(meta)
	kept, err := json.Marshal(m)
	if err != nil {
		return params // cannot happen: all of it was decoded
	}
	return kept
}

// Kept returns the text that withText stored under the key, or nil.
func Kept(meta mcp.Meta, key string) json.RawMessage {
	kept, _ := meta[key].(string)
	text, err := base64.StdEncoding.DecodeString(kept)
	if err != nil || len(text) == 0 {
		return nil
	}
	return text
}
