// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// formKey is the member of a question's _meta where its schema stands as text on
// the way through the SDK, which decodes schemas into maps: a form has its fields
// in the order in which the server wrote them.
const formKey = "io.github.consort-go/requested-schema"

// keepForm puts the schema of a question into its _meta, if request is one.
func keepForm(request *jsonrpc.Request) {
	if request.Method == "elicitation/create" {
		request.Params = withForm(request.Params)
	}
}

// keepForms does so for the questions of a result that asks for another round
// (MCP 2026-07-28, SEP-2322).
func keepForms(result json.RawMessage) json.RawMessage {
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
		if err != nil || string(question["method"]) != `"elicitation/create"` {
			continue
		}
		question["params"] = withForm(question["params"])
		questions[id], _ = json.Marshal(question) // of what was JSON
	}
	m["inputRequests"], _ = json.Marshal(questions)
	kept, err := json.Marshal(m)
	if err != nil {
		return result // cannot happen: all of it was decoded
	}
	return kept
}

// withForm returns the parameters of a question with its schema in their _meta; as
// they are if they cannot be read, which is for the SDK to say.
func withForm(params json.RawMessage) json.RawMessage {
	m, err := members(params)
	if err != nil || m["requestedSchema"] == nil {
		return params
	}
	meta, err := members(m["_meta"])
	if err != nil {
		meta = make(map[string]json.RawMessage)
	}
	meta[formKey], _ = json.Marshal(string(m["requestedSchema"]))
	m["_meta"], _ = json.Marshal(meta)
	kept, err := json.Marshal(m)
	if err != nil {
		return params // cannot happen: all of it was decoded
	}
	return kept
}
