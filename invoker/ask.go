// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/canister"
)

// ElicitRequest is a question to the person from a tool or the server behind it
// (MCP 2025-11-25, client/elicitation).
type ElicitRequest struct {
	// Server is the name of the server or tool that asks; may be empty.
	Server string
	// Key distinguishes the question from others of its call. It is the same when the
	// call is repeated. If it is empty, a conversation numbers equal questions, and an MCP
	// server all questions of the call. A stateless server repeats the
	// call for each answer (MCP 2026-07-28, SEP-2322) and uses Key to find the questions
	// that were already answered.
	Key     string
	Message string
	// Schema is the JSON Schema of the answer, a flat object; nil if the person is
	// sent to URL instead.
	Schema json.RawMessage
	// URL is a page that the person is asked to visit; empty for a form. It may come
	// from a server: show where it leads before opening it.
	URL string
	// OnCompletion registers a function that is called once, in its own goroutine,
	// when the server reports that the interaction at URL is complete
	// (notifications/elicitation/complete). That can happen before the answer, long
	// after it, or never. The function must return soon: closing the connection waits
	// for it. Nil if no report can arrive.
	OnCompletion func(func()) `json:"-"`
	// Anew means that no part of the call runs while the person is asked. The call is
	// made anew with the answer, so it can also be given up without an effect.
	Anew bool
}

// ElicitResult is the person's answer.
type ElicitResult struct {
	Action Action
	// Content has the values that the schema asks for, if Action is Accept. Numbers are
	// float64, or int64 for an integer beyond 2^53, which float64 may not represent.
	Content map[string]any
}

// Action is the person's reaction to a question.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // the person declined
	Dismiss Action = "cancel"  // the person dismissed the question
)

// SampleRequest is a request for an exchange with a model, from a tool or the
// server behind it (MCP 2025-11-25, client/sampling). The program that answers it
// may change or refuse it. The members includeContext and metadata of a server's
// request, and the numbers in its model preferences, are left out.
type SampleRequest struct {
	// Server is the name of the server or tool that asks; may be empty.
	Server string
	// Key distinguishes the request from others of its call, as in [ElicitRequest];
	// may be empty.
	Key         string
	System      string // the instruction; may be empty
	Messages    []SampleMessage
	MaxTokens   int64    // maximum length of the answer; 0 if not given
	Temperature *float64 // at least 0; nil if not given
	Stop        []string
	Models      []string // preferred models, the best first
	// Tools are the tools that the model can call in its answer; the requester runs
	// them. The model sees their Name, Title, Description and InputSchema.
	Tools      []Definition
	ToolChoice ToolChoice // whether the model may call them; empty means ToolsAuto
}

// SampleMessage is one message of a [SampleRequest].
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []canister.Content
	// ToolUses are the model's tool calls, after the content, in an assistant message
	// only. The next message has the ToolResults; it is a user message without
	// Content.
	ToolUses    []ToolUse
	ToolResults []ToolResult
}

// SampleResult is the model's answer.
type SampleResult struct {
	Text     string
	ToolUses []ToolUse // after the text; nil if the request has no tools
	Model    string    // the name of the model that answered
	// Finish is "endTurn", "stopSequence", "maxTokens", "toolUse" or the model's own
	// word.
	Finish string
}

// LogEntry is a log line of a tool for the observers of its calls.
type LogEntry struct {
	// Level is one of those in RFC 5424: debug, info, notice, warning, error,
	// critical, alert or emergency.
	Level string
	// Logger names the part of the tool that logs; may be empty.
	Logger string
	// Data is a JSON value, usually a string or an object.
	Data json.RawMessage
	// Logged means that the entry is already in the log of this program.
	Logged bool
}

// Causes of failures of [Call.Ask] and [Call.Sample].
var (
	ErrNoPerson = errors.New("no person can be asked during this call")
	ErrNoModel  = errors.New("no model can be called during this call")
)

// Ask asks the person behind the call and waits for the answer as long as ctx lasts: the
// time limits of the call are suspended. A person who declines or dismisses the question
// is not an error; see [ElicitResult].Action. If no person can be asked, Ask fails with
// Unavailable and the cause [ErrNoPerson].
func (c *Call) Ask(ctx context.Context, question *ElicitRequest) (*ElicitResult, error) {
	if c == nil || c.Person == nil {
		return nil, &Failure{Code: Unavailable, Message: "The tool needs an answer from a person, but no person can be asked here.", Cause: ErrNoPerson}
	}
	defer c.Hold()()
	return c.Person(ctx, question)
}

// Sample asks the model of the conversation that the call belongs to, within the
// limits of its turn. It fails with Unavailable and the cause [ErrNoModel] if no
// model can be asked. If the request has tools and the model does not accept
// tools, the cause is [ErrNoModelTools].
func (c *Call) Sample(ctx context.Context, request *SampleRequest) (*SampleResult, error) {
	if c == nil || c.Model == nil {
		return nil, &Failure{Code: Unavailable, Message: "The tool needs a model, but none is available here.", Cause: ErrNoModel}
	}
	if request != nil && request.UsesTools() {
		if !c.ModelTools {
			return nil, NoModelTools()
		}
		if err := request.CheckTools(); err != nil {
			return nil, err
		}
	}
	defer c.Hold()()
	return c.Model(ctx, request)
}

// Note logs an entry if the call has a listener for log entries.
func (c *Call) Note(entry LogEntry) {
	if c != nil && c.Log != nil {
		c.Log(entry)
	}
}
