// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/canister"
)

// ElicitRequest is a question of a tool, or of the server behind it, to the
// person (MCP 2025-11-25, client/elicitation).
type ElicitRequest struct {
	// Server is who asks: the server's or the tool's name; may be empty.
	Server string
	// Key tells the question from the others of its call, and is the same when
	// the call is made anew; empty to have them counted. A server that keeps
	// nothing between requests makes a call anew for each answer (MCP
	// 2026-07-28, SEP-2322), and finds by it what was answered already.
	Key     string
	Message string
	// Schema is the JSON Schema of the answer, a flat object; nil when the
	// person is sent to URL instead.
	Schema json.RawMessage
	// URL is a page that the person is asked to visit; empty for a form. It
	// may come from a server: show where it leads before it is opened.
	URL string
	// OnCompletion registers a function that is called once, on its own
	// goroutine, when the server reports that the interaction at URL is complete
	// (notifications/elicitation/complete). That can be before the answer, long
	// after it, or never. The function must return soon: closing the connection
	// waits for it. Nil if no report can arrive.
	OnCompletion func(func()) `json:"-"`
	// Anew says that nothing of the call is under way while the person is asked:
	// it is made anew with the answer, so that it can as well be given up.
	Anew bool
}

// ElicitResult is the person's answer.
type ElicitResult struct {
	Action Action
	// Content has the values that the schema asks for, when Action is Accept.
	Content map[string]any
}

// Action says what the person did with a question.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // said no
	Dismiss Action = "cancel"  // said nothing
)

// SampleRequest is the wish of a tool, or of the server behind it, for an
// exchange with a model (MCP 2025-11-25, client/sampling). Whoever answers it
// may change or refuse it. The members includeContext and metadata of a server's
// request, and the numbers among its preferences for a model, are left out.
type SampleRequest struct {
	// Server is who asks: the server's or the tool's name; may be empty.
	Server string
	// Key tells the request from the others of its call, as that of a question
	// does; may be empty.
	Key         string
	System      string // the instruction; may be empty
	Messages    []SampleMessage
	MaxTokens   int64    // of the answer; 0 when not said
	Temperature *float64 // from 0 up; nil when not said
	Stop        []string
	Models      []string // names that the asker would like, the best first
	// Tools are what the model can ask for in its answer; the asker runs them.
	// Name, Title, Description and InputSchema reach the model.
	Tools      []Definition
	ToolChoice ToolChoice // whether it may; empty means ToolsAuto
}

// SampleMessage is one message of a [SampleRequest].
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []canister.Content
	// ToolUses are what the model asked for, behind the content: of an assistant
	// only. The next message has the ToolResults, of a user only and without Content.
	ToolUses    []ToolUse
	ToolResults []ToolResult
}

// SampleResult is what the model said.
type SampleResult struct {
	Text     string
	ToolUses []ToolUse // behind the text; nil if the request has no tools
	Model    string    // the name of the model that said it
	// Finish is "endTurn", "stopSequence", "maxTokens", "toolUse" or the model's
	// own word.
	Finish string
}

// LogEntry is a line that a tool logs for whoever watches its calls.
type LogEntry struct {
	// Level is one of RFC 5424's: debug, info, notice, warning, error,
	// critical, alert or emergency.
	Level string
	// Logger names the part of the tool that speaks; may be empty.
	Logger string
	// Data is a JSON value, usually a string or an object.
	Data json.RawMessage
	// Logged says that the entry stands in the log of this program already.
	Logged bool
}

// Causes of failures of [Call.Ask] and [Call.Sample].
var (
	ErrNoPerson = errors.New("nobody can be asked for this call")
	ErrNoModel  = errors.New("no model can be asked for this call")
)

// Ask puts a question to the person behind the call and waits for the answer;
// the time limits of the call stand still meanwhile. It fails with Unavailable
// when nobody can be asked, for which [ErrNoPerson] is the cause.
func (c *Call) Ask(ctx context.Context, question *ElicitRequest) (*ElicitResult, error) {
	if c == nil || c.Person == nil {
		return nil, &Failure{Code: Unavailable, Message: "The tool needs an answer from a person, and nobody can be asked here.", Cause: ErrNoPerson}
	}
	defer c.Hold()()
	return c.Person(ctx, question)
}

// Sample asks the model of the conversation that the call belongs to, under the
// limits of its turn. It fails with Unavailable when there is none, for which
// [ErrNoModel] is the cause, and for a request with tools when the model takes
// none, for which [ErrNoModelTools] is.
func (c *Call) Sample(ctx context.Context, request *SampleRequest) (*SampleResult, error) {
	if c == nil || c.Model == nil {
		return nil, &Failure{Code: Unavailable, Message: "The tool needs a model, and none can be asked here.", Cause: ErrNoModel}
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

// Note logs an entry for whoever watches the call, if anybody does.
func (c *Call) Note(entry LogEntry) {
	if c != nil && c.Log != nil {
		c.Log(entry)
	}
}
