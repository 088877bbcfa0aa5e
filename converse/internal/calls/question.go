// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/json"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/invoker"
)

// Question is the JSON form of a question in a wait.
type Question struct {
	Server  string          `json:"server,omitzero"`
	Key     string          `json:"key,omitzero"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	URL     string          `json:"url,omitzero"`
}

// CheckQuestion returns an error if a question, in its JSON form, cannot wait in a log.
func CheckQuestion(form string) error {
	if len(form) > MaxAnswer {
		return invoker.Failf(invoker.Internal, "The person could not be asked to answer later: the tool's question has %d bytes in its JSON form; at most %d are allowed.", len(form), MaxAnswer)
	}
	if err := canister.Writable(canister.Wait{Question: []byte(form)}); err != nil {
		return invoker.Failf(invoker.Internal, "The person could not be asked to answer later: the tool's question cannot be stored: %w", err)
	}
	return nil
}

// QuestionText returns a question as JSON without secrets. Equal questions have equal texts,
// except for the number of one that was asked before in its call and has no key.
func QuestionText(clean redaction.Func, asked *invoker.ElicitRequest, number int) (string, error) {
	form := Question{Server: clean.Text(asked.Server), Key: asked.Key, Message: clean.Text(asked.Message), URL: clean.Text(asked.URL)}
	if form.Key == "" && number > 1 {
		form.Key = strconv.Itoa(number)
	}
	if len(asked.Schema) > 0 {
		form.Schema = clean.Fields(canister.Fields{"schema": asked.Schema})["schema"]
	}
	text, err := json.Marshal(form)
	if err != nil {
		return "", invoker.Failf(invoker.Internal, "The schema of the tool's question is not JSON: %w", err)
	}
	return string(text), nil
}
