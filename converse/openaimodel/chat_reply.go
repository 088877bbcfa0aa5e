// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"errors"
	"maps"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/jsontext"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/textcut"
)

// noArguments replaces the arguments of a call that was cut off before them. It is not
// JSON, so that the tool does not run as if it had been called without arguments, and the
// model learns that its call was cut off.
const noArguments = "[cut off before the arguments]"

// reply returns the complete answer.
func (a *accumulator) reply(server *modelapi.Server, newID func() string) (converse.Reply, error) {
	if a.overflown {
		return converse.Reply{}, errors.New("the answer holds more than 512 calls")
	}
	message := canister.Assistant{
		Head:   canister.Head{ID: newID()},
		Model:  a.model,
		Finish: a.reason(),
		Usage:  a.usage,
	}
	for _, text := range [][]byte{a.text, a.refusal} {
		if len(text) > 0 {
			message.Content = append(message.Content, canister.Text(string(text)))
		}
	}
	if len(a.thought) > 0 {
		message.Metadata = server.Keep(reasoningKey, "", jsontext.AppendString(nil, string(a.thought)))
	}
	if text := a.details.text(); text != nil {
		if message.Metadata == nil {
			message.Metadata = canister.Fields{}
		}
		maps.Copy(message.Metadata, server.Keep(detailsKey, "", text))
	}
	cutOff := message.Finish == canister.FinishLength || message.Finish == canister.FinishContentFilter
	reply := converse.Reply{Message: message}
	taken := make(map[string]bool, len(a.calls))
	for i, c := range a.calls {
		call := canister.Invocation{
			Head:      canister.Head{ID: newID()},
			Message:   message.ID,
			CallID:    strings.Clone(c.id),
			Name:      modelapi.ToolName(a.tools, c.name),
			Arguments: string(c.arguments),
		}
		if call.CallID == "" || taken[call.CallID] {
			call.CallID = modelapi.MadeCallID(call.ID)
		}
		taken[call.CallID] = true
		if strings.TrimSpace(call.Arguments) == "" {
			call.Arguments = "{}"
			if cutOff && i == len(a.calls)-1 {
				call.Arguments = noArguments
			}
		}
		if c.extra != "" {
			call.Metadata = server.Keep(extraKey, "", []byte(c.extra))
		}
		reply.Invocations = append(reply.Invocations, call)
	}
	return reply, nil
}

// reason returns the reason why the model stopped. If there are calls, it is
// FinishInvocations whatever the server sent, unless the answer was cut off or filtered.
func (a *accumulator) reason() canister.Finish {
	switch a.finish {
	case "length", "max_tokens", "model_length":
		return canister.FinishLength
	case "content_filter", "safety", "SAFETY", "sensitive":
		return canister.FinishContentFilter
	}
	switch {
	case len(a.calls) > 0:
		return canister.FinishInvocations
	case len(a.refusal) > 0 || a.finish == "refusal":
		return canister.FinishRefusal
	}
	switch a.finish {
	case "", "stop", "eos", "end_turn", "stop_sequence", "tool_calls", "function_call":
		return canister.FinishStop
	}
	return canister.Finish(textcut.Bytes(strings.ToValidUTF8(a.finish, "\uFFFD"), 100))
}
