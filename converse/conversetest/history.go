// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// tools returns the tools that the suite's requests offer.
func tools() *converse.Toolset {
	return &converse.Toolset{Definitions: []*invoker.Definition{
		{
			Name:        "files__read",
			Description: "Read a file.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		},
		{
			Name:        "local__weather",
			Description: "Report the weather.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"the name of a city"}}}`),
			Hints:       invoker.Hints{ReadOnly: true},
			Metadata:    canister.Fields{"note": json.RawMessage(`"for programs alone"`)},
		},
	}}
}

// historyOf returns a history with n assistant messages. It is a prefix of each longer
// history. The first four messages are the lines of dialogue.
func historyOf(n int) []canister.Canister {
	h := []canister.Canister{
		canister.Supervisor{Head: head("s1"), Content: canister.Texts("Answer in one sentence.")},
		canister.Document{Head: head("d1"), Title: "Opening hours", Content: canister.Texts("From nine to five.")},
		canister.User{Head: head("u1"), Content: canister.Texts("Is it raining in Oslo and Bergen?")},
	}
	for i := range n {
		line := Line{Text: fmt.Sprintf("Answer %d.", i)}
		if i < len(dialogue) {
			line = dialogue[i]
		}
		h = appendLine(h, i, line)
	}
	return h
}

// appendLine appends the model's message of a line, the results of its tools, and the
// user's next message if it has no calls.
func appendLine(h []canister.Canister, i int, line Line) []canister.Canister {
	message := canister.Assistant{Head: head(fmt.Sprintf("a%d", i)), Finish: canister.FinishStop}
	if line.Text != "" {
		message.Content = canister.Texts(line.Text)
	}
	if len(line.Calls) == 0 {
		return append(h, message,
			canister.User{Head: head(fmt.Sprintf("u%d", i)), Content: canister.Texts(fmt.Sprintf("Thank you %d.", i))})
	}
	message.Finish = canister.FinishInvocations
	h = append(h, message)
	var results []canister.Canister
	for j, call := range line.Calls {
		id := fmt.Sprintf("i%d.%d", i, j)
		h = append(h, canister.Invocation{
			Head: head(id), Message: message.ID, CallID: call.CallID, Name: call.Name, Arguments: call.Arguments,
		})
		result := canister.Result{Head: head("r" + id), Invocation: id, Content: canister.Texts("It is three degrees.")}
		if call.Name != "local__weather" {
			result.Content, result.Code = canister.Texts("There is no such file."), string(invoker.NotFound)
		}
		results = append(results, result)
	}
	return append(h, results...)
}

func head(id string) canister.Head {
	return canister.Head{ID: id, Extra: canister.Extra{Metadata: canister.Fields{"note": json.RawMessage(`"for programs alone"`)}}}
}

// assistants counts the assistant messages of a history.
func assistants(history []canister.Canister) int {
	n := 0
	for _, c := range history {
		if _, ok := c.(canister.Assistant); ok {
			n++
		}
	}
	return n
}
