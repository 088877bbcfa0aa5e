// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"bytes"
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
)

// outputOf converts a response to the output of the tool or to its failure.
func outputOf(response *toolspb.ToolCallResponse) (invoker.Output, *invoker.Failure) {
	if !response.GetSuccess() {
		return invoker.Output{}, told(response)
	}
	if content := contentOf(response.GetContentJson()); content != nil {
		return invoker.Output{Content: content}, nil
	}
	return invoker.Output{Content: resultOf(response.GetResultJson())}, nil
}

// resultOf converts a result: a string is text, any other value structured content, and
// null or an empty result no content. Invalid JSON is taken as text: the tool has run,
// and some servers write NaN and the like.
func resultOf(result string) []canister.Content {
	trimmed := bytes.TrimSpace([]byte(result))
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	var text string
	if trimmed[0] == '"' && json.Unmarshal(trimmed, &text) == nil {
		return canister.Texts(text)
	}
	var value bytes.Buffer
	if json.Compact(&value, trimmed) != nil { // not JSON
		return canister.Texts(result)
	}
	return []canister.Content{canister.StructuredContent{JSON: value.Bytes()}}
}

// contentOf parses content in its JSON form (docs/canisters.md). It returns nil if
// there is none or it cannot be parsed; the result then has a shorter form of it.
func contentOf(text string) []canister.Content {
	if text == "" || !json.Valid([]byte(text)) {
		return nil
	}
	line, err := json.Marshal(map[string]json.RawMessage{"kind": quoted(string(canister.KindResult)), "content": json.RawMessage(text)})
	if err != nil {
		return nil
	}
	c, err := canister.Unmarshal(line)
	if err != nil {
		return nil
	}
	return c.(canister.Result).Content
}

// contentText is the inverse of contentOf. It omits metadata, which is meant for
// programs on this side.
func contentText(content []canister.Content) string {
	bare := make([]canister.Content, len(content))
	for i, c := range content {
		p := canister.PayloadOf(c)
		p.Extra = canister.Extra{}
		bare[i] = canister.WithPayload(c, p)
	}
	line, err := canister.Marshal(canister.Result{Content: bare})
	if err != nil {
		return "" // a value without JSON form; the result has a text form of it
	}
	var form struct{ Content json.RawMessage }
	if json.Unmarshal(line, &form) != nil {
		return ""
	}
	return clean(string(form.Content))
}

func quoted(text string) json.RawMessage {
	value, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always marshal
	}
	return value
}
