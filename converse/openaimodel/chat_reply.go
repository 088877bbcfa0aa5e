// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"errors"
	"maps"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/jsontext"
)

// reply returns the complete answer.
func (a *accumulator) reply(server *modelapi.Server, request *converse.Request) (converse.Reply, error) {
	if a.overflown {
		return converse.Reply{}, errors.New("the answer holds more than 512 calls")
	}
	if a.details.overflown {
		return converse.Reply{}, errors.New("the answer holds more than 262144 reasoning_details")
	}
	message := canister.Assistant{
		Head:   canister.Head{ID: request.NewID()},
		Model:  a.model,
		Finish: a.reason(),
		Usage:  a.usage,
	}
	if len(a.text) > 0 {
		message.Content = append(message.Content, modelapi.Cited(string(a.text), a.cited))
	}
	if len(a.refusal) > 0 {
		message.Content = append(message.Content, canister.Text(string(a.refusal)))
	}
	if len(a.thought) > 0 {
		message.Metadata = server.Keep(reasoningKey, "", jsontext.AppendString(nil, string(a.thought)))
	}
	if text := a.details.text(); text != nil {
		if message.Metadata == nil {
			message.Metadata = canister.Fields{}
		}
		maps.Copy(message.Metadata, server.Keep(detailsKey, server.Model, text))
	}
	cutOff := message.Finish == canister.FinishLength || message.Finish == canister.FinishContentFilter ||
		a.finish == "" && !a.atOnce // a proxy that loses its server may still send [DONE]
	calls := modelapi.NewCalls(request, message.ID)
	for i, c := range a.calls {
		if message.Finish == canister.FinishRefusal { // its calls do not run
			break
		}
		call := calls.Add(strings.Clone(c.id), c.name, string(c.arguments))
		if cutOff && i == len(a.calls)-1 && len(bytes.TrimSpace(c.arguments)) == 0 {
			call.Arguments = modelapi.CutOffArguments
		}
		if c.extra != "" {
			call.Metadata = server.Keep(extraKey, "", []byte(c.extra))
		}
	}
	return converse.Reply{Message: message, Invocations: calls.Invocations}, nil
}

// reason returns the reason why the model stopped. If there are calls, it is
// FinishInvocations whatever the server sent, unless the answer was cut off, filtered or refused.
func (a *accumulator) reason() canister.Finish {
	switch a.finish {
	case "length", "max_tokens", "model_length":
		return canister.FinishLength
	case "content_filter", "safety", "SAFETY", "sensitive":
		return canister.FinishContentFilter
	}
	switch {
	case a.finish == "refusal", len(a.refusal) > 0 && len(a.calls) == 0:
		return canister.FinishRefusal
	case len(a.calls) > 0:
		return canister.FinishInvocations
	}
	switch a.finish {
	case "", "stop", "eos", "end_turn", "stop_sequence", "tool_calls", "function_call":
		return canister.FinishStop
	}
	return modelapi.OtherFinish(a.finish)
}
