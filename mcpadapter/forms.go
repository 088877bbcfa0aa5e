// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/base64"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The members of a question's _meta where what the SDK decodes into maps stands as
// text, in base64, on its way through the SDK: the schema of a form, whose fields are in the order
// in which the server wrote them, and the whole of a request to a model.
const (
	formKey     = "io.github.consort-go/requested-schema"
	samplingKey = "io.github.consort-go/sampling"
)

// keepText puts the text of a question into its _meta, if request is one.
func keepText(request *jsonrpc.Request) {
	request.Params = withText(request.Method, request.Params)
}

// keepTexts does so for the questions of a result that asks for another round
// (MCP 2026-07-28, SEP-2322).
func keepTexts(result json.RawMessage) json.RawMessage {
	m, err := members(result)
	if err != nil {
		return result
	}
	questions, err := members(m["inputRequests"])
	if err != nil {
		return result
	}
	for id, raw := range questions {
		question, err := members(raw)
		var method string
		if err != nil || json.Unmarshal(question["method"], &method) != nil {
			continue
		}
		question["params"] = withText(method, question["params"])
		questions[id], _ = json.Marshal(question) // of what was JSON
	}
	m["inputRequests"], _ = json.Marshal(questions)
	kept, err := json.Marshal(m)
	if err != nil {
		return result // cannot happen: all of it was decoded
	}
	return kept
}

// withText returns the parameters of a question with its text in their _meta; as
// they are if they cannot be read, which is for the SDK to say.
func withText(method string, params json.RawMessage) json.RawMessage {
	key := map[string]string{"elicitation/create": formKey, "sampling/createMessage": samplingKey}[method]
	if key == "" {
		return params
	}
	m, err := members(params)
	if err != nil {
		return params
	}
	text := params
	if key == formKey {
		text = m["requestedSchema"]
	}
	if text == nil {
		return params
	}
	meta, err := members(m["_meta"])
	if err != nil {
		meta = make(map[string]json.RawMessage)
	}
	meta[key], _ = json.Marshal([]byte(text)) // as a string it could grow sixfold
	m["_meta"], _ = json.Marshal(meta)
	kept, err := json.Marshal(m)
	if err != nil {
		return params // cannot happen: all of it was decoded
	}
	return kept
}

// textKept returns the text that withText put under the key; nil if there is none.
func textKept(meta mcp.Meta, key string) json.RawMessage {
	kept, _ := meta[key].(string)
	text, err := base64.StdEncoding.DecodeString(kept)
	if err != nil || len(text) == 0 {
		return nil
	}
	return text
}
