// SPDX-License-Identifier: Apache-2.0

// Package conversetool has what the two tools named converse share: the tool of
// converse/agenttool, whose conversations are in memory, and the tool of consort serve,
// whose conversations are stored.
package conversetool

import (
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/progress"
	"github.com/consort-go/consort/invoker"
)

// Name is the name of the tool.
const Name = "converse"

// Description tells a model how to use the tool. Each tool appends what is particular to
// it.
const Description = "Talk with an assistant that has tools of its own. Each call sends one message. " +
	"To continue a conversation, send the conversation that an earlier call returned; without it, a new one starts. " +
	"A call with a conversation and no message continues the conversation and returns the answer to the last message. "

// Message is the input of the tool.
type Message struct {
	Message      string `json:"message,omitempty" jsonschema:"what to say to the assistant; without it, the call continues the conversation and returns the answer to the last message"`
	Conversation string `json:"conversation,omitempty" jsonschema:"the conversation to continue, as returned by an earlier call; without it, a new one starts"`
}

// Check returns the failure of a call that has neither a message nor a conversation,
// and otherwise nil.
func (m Message) Check() error {
	if m.Message == "" && m.Conversation == "" {
		return &invoker.Failure{Code: invoker.InvalidArguments, Message: "A message or a conversation is required.", Pointer: "/message"}
	}
	return nil
}

// Reply is the output of the tool.
type Reply struct {
	Conversation string          `json:"conversation" jsonschema:"send it with the next message to continue"`
	Answer       string          `json:"answer" jsonschema:"the assistant's answer"`
	Reason       converse.Reason `json:"reason" jsonschema:"why the turn ended: answered, waiting for a person, or the reason why it was cut short"`
}

// pieceBytes is how much text is collected for one report.
const pieceBytes = 64

// Progress reports a turn to the caller of the tool: the text of the model in pieces, and
// what else happens. If nothing happens, it reports that the turn is at work.
type Progress struct {
	to    *progress.Reporter
	piece strings.Builder // not reported yet
}

// Begin starts reports to the caller of a call, which may be nil. The caller of Begin
// must call End.
func Begin(call *invoker.Call) *Progress { return &Progress{to: progress.Begin(call)} }

// End ends the reports.
func (p *Progress) End() { p.to.End() }

// Text reports text of the model, once there is enough of it.
func (p *Progress) Text(text string) {
	if p.piece.WriteString(text); p.piece.Len() >= pieceBytes {
		p.Report("")
	}
}

// Report reports the collected text, and an event unless it is empty.
func (p *Progress) Report(event string) {
	if p.piece.Len() == 0 && event == "" {
		return
	}
	var partial []canister.Content
	if p.piece.Len() > 0 {
		partial = canister.Texts(p.piece.String())
		p.piece.Reset()
	}
	p.to.Report(event, partial)
}
