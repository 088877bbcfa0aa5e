// SPDX-License-Identifier: Apache-2.0

// Package sample translates the questions of a tool to the model: requests to canisters,
// and replies to results.
package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// Translator translates the questions of one call of a tool. It is safe for concurrent
// use.
type Translator struct {
	Clean redaction.Func
	Head  func() canister.Head // makes the head of a canister

	mu      sync.Mutex
	answers map[string]keptAnswer // with calls, by answerKey
}

// keptAnswer is the metadata of an answer with calls, which some model APIs require again
// later. The requester does not get it: it can hold the model's reasoning.
type keptAnswer struct {
	message canister.Fields
	calls   map[string]canister.Fields // by CallID
}

// History converts the messages of a request to canisters.
func (t *Translator) History(request *invoker.SampleRequest) ([]canister.Canister, error) {
	if err := check(request); err != nil {
		return nil, err
	}
	var history []canister.Canister
	if request.System != "" {
		history = append(history, canister.Supervisor{Head: t.Head(), Content: canister.Texts(t.Clean.Text(request.System))})
	}
	var uses []canister.Invocation // of the previous message
	for i, message := range request.Messages {
		content := t.Clean.Contents(bounds.ByValue(message.Content))
		switch {
		case len(message.ToolResults) > 0:
			history = append(history, t.results(uses, message.ToolResults)...)
		case message.Role == "user":
			history = append(history, canister.User{Head: t.Head(), Content: content})
		case message.Role == "assistant":
			said := canister.Assistant{Head: t.Head(), Content: content, Finish: canister.FinishStop}
			uses = t.invocations(&said, message.ToolUses)
			history = append(history, said)
			for _, use := range uses {
				history = append(history, use)
			}
		default:
			return nil, invoker.Failf(invoker.InvalidArguments, "Message %d for the model has the role %q; it must be user or assistant.", i, textcut.Bytes(message.Role, bounds.MaxQuoted))
		}
	}
	return history, nil
}

// check returns an error if a request is invalid.
func check(request *invoker.SampleRequest) error {
	if request == nil || len(request.Messages) == 0 {
		return invoker.Failf(invoker.InvalidArguments, "The model was not asked: the request has no message.")
	}
	if request.MaxTokens < 0 {
		return invoker.Failf(invoker.InvalidArguments, "The request asks for %d tokens; the number must not be negative.", request.MaxTokens)
	}
	if t := request.Temperature; t != nil && (*t < 0 || math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return invoker.Failf(invoker.InvalidArguments, "The request has the temperature %v; it must be a number of 0 or more.", *t)
	}
	return request.CheckTools()
}

// Result converts a reply of the model. Names are the tools of the request that the model
// may call.
func (t *Translator) Result(message canister.Assistant, invocations []canister.Invocation, names Names) (*invoker.SampleResult, error) {
	uses, err := names.uses(message, invocations)
	if err != nil {
		return nil, err
	}
	t.keep(message, invocations, uses)
	return &invoker.SampleResult{
		Text:     canister.TextOf(message.Content),
		ToolUses: uses,
		Model:    message.Model,
		Finish:   finishOf(message.Finish, len(uses) > 0),
	}, nil
}

// keep keeps the metadata of an answer as long as the call of the tool lasts.
func (t *Translator) keep(message canister.Assistant, invocations []canister.Invocation, uses []invoker.ToolUse) {
	if len(uses) == 0 {
		return
	}
	kept := keptAnswer{message: message.Metadata, calls: map[string]canister.Fields{}}
	for _, call := range invocations {
		kept.calls[call.CallID] = call.Metadata
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil {
		t.answers = map[string]keptAnswer{}
	}
	t.answers[answerKey(uses)] = kept
}

// answerKey identifies an answer by its uses of tools.
func answerKey(uses []invoker.ToolUse) string {
	var key strings.Builder
	for _, use := range uses {
		fmt.Fprintf(&key, "%q %q ", use.ID, use.Name)
	}
	return key.String()
}

// kept returns the metadata of an answer of this call; nothing for one that came from
// somewhere else.
func (t *Translator) kept(uses []invoker.ToolUse) keptAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answers[answerKey(uses)]
}

// invocations converts the tool uses of a message to canisters. Metadata of the requester
// is not passed to the model's server.
func (t *Translator) invocations(said *canister.Assistant, uses []invoker.ToolUse) (calls []canister.Invocation) {
	kept := t.kept(uses)
	if len(uses) > 0 {
		said.Finish, said.Metadata = canister.FinishInvocations, kept.message
	}
	for _, use := range uses {
		call := canister.Invocation{Head: t.Head(), Message: said.ID, CallID: use.ID, Name: nameFor(use.Name), Arguments: "{}"}
		call.Metadata = kept.calls[use.ID]
		if len(use.Input) > 0 {
			call.Arguments = t.Clean.JSON(use.Input)
		}
		calls = append(calls, call)
	}
	return calls
}

// results converts the results of tools to canisters, in the order of the calls. Each
// call has one: CheckTools has checked the request.
func (t *Translator) results(calls []canister.Invocation, results []invoker.ToolResult) (answers []canister.Canister) {
	for _, call := range calls {
		at := slices.IndexFunc(results, func(r invoker.ToolResult) bool { return r.ToolUseID == call.CallID })
		answer := canister.Result{Head: t.Head(), Invocation: call.ID, Content: t.Clean.Contents(bounds.ByValue(results[at].Content))}
		answer.Metadata = t.Clean.Fields(results[at].Metadata)
		if results[at].Failed {
			answer.Code = string(invoker.ExecutionFailed)
		}
		answers = append(answers, answer)
	}
	return answers
}

// finishOf translates a finish to the terms of MCP 2025-11-25, client/sampling.
func finishOf(finish canister.Finish, usesTools bool) string {
	switch finish {
	case canister.FinishInvocations, canister.FinishStop:
		if usesTools {
			return "toolUse"
		}
		return "endTurn"
	case canister.FinishLength:
		return "maxTokens"
	}
	return cmp.Or(string(finish), "endTurn")
}
