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
