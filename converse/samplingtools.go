// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// sampleTools are the tools in a sampling request of a tool. The model is offered them;
// the conversation runs none of them.
type sampleTools struct {
	set     *Toolset
	names   map[string]string // the requester's names, by the names for the model
	allowed bool              // the model may call them
}

// tools returns the tools of a request, or an error if the model cannot be offered one
// of them. None is left out, because the requester would not notice.
func (s *sampling) tools(request *invoker.SampleRequest) (sampleTools, error) {
	tools := sampleTools{set: &Toolset{}, names: map[string]string{}, allowed: request.ToolChoice != invoker.ToolsNone}
	choice := chooserFor(s.batch.turn.conv.origin, s.opts.Limits.Tools)
	if choice.limit >= 0 && len(request.Tools) > choice.limit {
		return tools, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered %d tools: %s.", len(request.Tools), choice.why)
	}
	for _, definition := range request.Tools {
		name := sampleName(definition.Name)
		if _, taken := tools.names[name]; taken {
			return tools, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered the tool %q: another tool has the same name for the model.", textcut.Bytes(definition.Name, bounds.MaxQuoted))
		}
		tools.names[name] = definition.Name
		definition.Name, definition.Title, definition.Description = name, s.batch.clean.Text(definition.Title), s.batch.clean.Text(definition.Description)
		definition.InputSchema, definition.OutputSchema = s.batch.clean.Schema(definition.InputSchema), s.batch.clean.Schema(definition.OutputSchema)
		definition.Metadata = s.batch.clean.Fields(definition.Metadata)
		if err := screen(&definition, choice.screener); err != nil {
			return tools, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered the tool %q: %w.", textcut.Bytes(tools.names[name], bounds.MaxQuoted), err)
		}
		tools.set.Definitions = append(tools.set.Definitions, &definition)
	}
	slices.SortFunc(tools.set.Definitions, func(a, b *invoker.Definition) int { return strings.Compare(a.Name, b.Name) })
	return tools, nil
}

// sampleName returns the model's name for a tool of a requester, always the same: its
// own name, unless it is long or a model API would refuse it.
func sampleName(name string) string {
	const scope = "tool"
	if known := ensemble.NameFor(scope, name); known != scope+"__"+name {
		return known
	}
	return name
}

// uses returns the calls of tools in an answer. Calls are ignored if the request has no
// tools or does not allow calls.
func (t *sampleTools) uses(reply *Reply) (uses []invoker.ToolUse, err error) {
	if !t.allowed || len(t.names) == 0 {
		return nil, nil
	}
	for _, call := range reply.Invocations {
		name, known := t.names[call.Name]
		if !known {
			name = call.Name // the requester can refuse it
		}
		input := json.RawMessage(strings.TrimSpace(call.Arguments))
		if !calls.IsObject(input) {
			if finish := reply.Message.Finish; finish == canister.FinishLength || finish == canister.FinishContentFilter {
				break // the call is cut off, and the finish of the answer says so
			}
			return nil, invoker.Failf(invoker.ExecutionFailed, "The model asked for the tool %q with arguments that are not a JSON object.", textcut.Bytes(name, bounds.MaxQuoted))
		}
		uses = append(uses, invoker.ToolUse{ID: call.CallID, Name: name, Input: input})
	}
	return uses, nil
}

// keptAnswer is the metadata of an answer with calls, which some model APIs require again
// later. The requester does not get it: it can hold the model's reasoning.
type keptAnswer struct {
	message canister.Fields
	calls   map[string]canister.Fields // by CallID
}

// keep keeps the metadata of an answer as long as the call of the tool lasts.
func (s *sampling) keep(reply *Reply, uses []invoker.ToolUse) {
	if len(uses) == 0 {
		return
	}
	kept := keptAnswer{message: reply.Message.Metadata, calls: map[string]canister.Fields{}}
	for _, call := range reply.Invocations {
		kept.calls[call.CallID] = call.Metadata
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]keptAnswer{}
	}
	s.answers[answerKey(uses)] = kept
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
func (s *sampling) kept(uses []invoker.ToolUse) keptAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[answerKey(uses)]
}

// invocations converts the tool uses of a message to canisters. Metadata of the requester
// is not passed to the model's server.
func (s *sampling) invocations(said *canister.Assistant, uses []invoker.ToolUse) (calls []canister.Invocation) {
	kept := s.kept(uses)
	if len(uses) > 0 {
		said.Finish, said.Metadata = canister.FinishInvocations, kept.message
	}
	for _, use := range uses {
		call := canister.Invocation{Head: s.head(), Message: said.ID, CallID: use.ID, Name: sampleName(use.Name), Arguments: "{}"}
		call.Metadata = kept.calls[use.ID]
		if len(use.Input) > 0 {
			call.Arguments = s.batch.clean.JSON(use.Input)
		}
		calls = append(calls, call)
	}
	return calls
}

// results converts the results of tools to canisters, in the order of the calls. Each
// call has one: CheckTools has checked the request.
func (s *sampling) results(calls []canister.Invocation, results []invoker.ToolResult) (answers []canister.Canister) {
	for _, call := range calls {
		at := slices.IndexFunc(results, func(r invoker.ToolResult) bool { return r.ToolUseID == call.CallID })
		answer := canister.Result{Head: s.head(), Invocation: call.ID, Content: s.batch.clean.Contents(bounds.ByValue(results[at].Content))}
		answer.Metadata = s.batch.clean.Fields(results[at].Metadata)
		if results[at].Failed {
			answer.Code = string(invoker.ExecutionFailed)
		}
		answers = append(answers, answer)
	}
	return answers
}
