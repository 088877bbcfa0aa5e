// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
)

// waitText lists the waits of the conversation for the user of a chat program. It ends with their
// question ID: two chats with the same texts would otherwise be the same to a request.
func waitText(open []openwaits.Wait) string {
	return openwaits.Text(open) + "Answer with the message /allow, or /deny and a reason. (Question " + questionOf(open) + ")"
}

// questionOf returns the question ID of open waits.
func questionOf(open []openwaits.Wait) string {
	var ids []string
	for _, wait := range open {
		ids = append(ids, wait.ID)
	}
	slices.Sort(ids)
	return derived(append(ids, "question")...)[:10]
}

// questionID matches the question ID at the end of a message of the assistant.
var questionID = regexp.MustCompile(`\(Question ([a-z2-7]{10})\)\s*$`)

// questionIn returns the question ID of a message, or "".
func questionIn(m *inputMessage) string {
	content, err := partsOf("", m.Content)
	if err != nil {
		return ""
	}
	if found := questionID.FindStringSubmatch(canister.TextOf(content)); found != nil {
		return found[1]
	}
	return ""
}

// splitAnswer returns the first word of an answer, and the rest.
func splitAnswer(text string) (word, reason string) {
	word, reason, _ = strings.Cut(strings.TrimSpace(text), " ")
	return word, strings.TrimSpace(reason)
}

// isAnswer reports whether a message is meant as the answer to a question.
func isAnswer(text string) bool {
	word, _ := splitAnswer(text)
	return word == "/allow" || word == "/deny"
}

// notAsked returns the error for an answer to a question that is not open.
func notAsked() error {
	return failure(http.StatusConflict, "wait_not_open", "This question is not open: it was answered already, or another request is answering it.",
		"Send another message, without the question, or read the conversation over /api.")
}

// What a client can do that has not been asked for the calls that it allows.
const (
	sendResults = "Send the results of the calls alone; the next answer asks for approval."
	notShown    = "The chat has not shown what it would allow. Answer at the console, or"
)

// parseAnswers returns the answers that a message gives to open waits. It can allow calls only if the chat has been
// asked for them; unasked, which is empty then, says what to do otherwise.
func parseAnswers(conversation string, open []openwaits.Wait, unasked, text string) ([]canister.Answer, error) {
	word, reason := splitAnswer(text)
	var all []canister.Answer
	for _, wait := range open {
		verdict := canister.Verdict("")
		switch {
		case word == "/allow" && unasked == "" && wait.For != canister.WaitElicitation:
			verdict = canister.VerdictAllow
		case word == "/deny":
			verdict = openwaits.Refusals[wait.For]
		}
		if verdict == "" {
			advice := cmp.Or(unasked, "Send the message /allow or /deny REASON, or")
			if unasked == "" && wait.For == canister.WaitElicitation {
				advice = "Send the message /deny REASON, or"
			}
			if advice != sendResults {
				advice += " POST /api/conversations/" + conversation + "/waits/" + wait.ID + "."
			}
			return nil, failure(http.StatusConflict, "conversation_waits", "The conversation waits for an answer, and this message is not one.", advice)
		}
		all = append(all, canister.Answer{Wait: wait.ID, Verdict: verdict, Reason: reason})
	}
	return all, nil
}
