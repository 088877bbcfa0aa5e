// SPDX-License-Identifier: Apache-2.0

// Package approvals remembers the calls that a person allows: once, for one
// conversation, or always.
//
// An [Approver] is the approval function of a conversation. It asks an [Asker], such as a
// terminal, and remembers the answer as far as the answer says. Answers that hold for
// good are in a [Store], a file of the user.
package approvals

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
)

// Asker asks a person whether a call may run. It is called for one question at a time. An
// error, such as that of ctx, means that there is no answer: the call does not run.
//
// An Asker must not accept input that was typed or pasted before it showed the question.
type Asker interface {
	AskApproval(ctx context.Context, question Question) (Answer, error)
}

// Question is a call that needs a decision, and the answers that are possible.
type Question struct {
	converse.Approval
	// Always and Later say whether the answers of the same name are possible.
	Always, Later bool
	// Changed reports that the person has always allowed a tool of this name, but its
	// definition has changed since, or the server of this name is another one now.
	Changed bool
}

// ChangedWarning is shown with a question that has Changed.
const ChangedWarning = "You always allowed a tool of this name, but the tool or its server has changed since."

// maxName bounds the length of a name in a question, in characters.
const maxName = 100

// Choice is the decision of a person.
type Choice int

// The choices. The zero value denies.
const (
	Deny         Choice = iota
	Once                // this call runs
	Conversation        // and all calls of the tool, until the conversation ends
	Always              // and all calls of the tool, until the person revokes it
	Later               // the decision is postponed
)

// Answer is the answer to a [Question].
type Answer struct {
	Choice Choice
	// Reason says why the call is denied, in the person's words. The model gets it. It may
	// be empty.
	Reason string
}

// Name returns the name under which a call's tool is listed and offered to models, which
// has ASCII letters, digits, '_' and '-' only, and differs from the name of any other tool.
func Name(ask converse.Approval) string { return ensemble.NameFor(ask.Ensemble, ask.Tool) }

// Describe describes the tool of a call to a person, in one line and without the tool's
// description: its [Name], its own name if that differs, and the meaning of its
// hints. The line has no invisible characters.
func Describe(ask converse.Approval) string {
	text := Name(ask)
	if plain := ask.Ensemble + "__" + ask.Tool; text != plain {
		text += fmt.Sprintf(" (%+q of %+q)", textcut.Runes(ask.Tool, maxName), textcut.Runes(ask.Ensemble, maxName))
	}
	switch {
	case ask.Definition == nil:
		return text
	case ask.ReadOnly:
		return text + ", which declares that it changes nothing"
	case ask.Definition.Hints.ReadOnly:
		return text + ", which declares that it changes nothing (not trusted)"
	case ask.Definition.Hints.MayDestroy():
		return text + ", which may destroy something"
	}
	return text + ", which changes something"
}

// Arguments returns the arguments of a call as indented JSON, in which invisible
// characters are visible, with each line indented by two spaces.
func Arguments(ask converse.Approval) string {
	var text strings.Builder
	for line := range strings.Lines(display.JSON(ask.Arguments)) {
		text.WriteString("  " + line)
	}
	return text.String()
}
