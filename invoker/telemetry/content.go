// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/redact"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// wanted reports whether content is recorded.
func (o *operation) wanted() bool { return o.telemetry.options.Content && o.recording }

// record sets an attribute to a JSON text of at most Options.ContentBytes. The
// limits of other attributes do not apply.
func (o *operation) record(key attribute.Key, text json.RawMessage) {
	o.onSpan(func(span trace.Span) { span.SetAttributes(key.String(string(text))) })
}

// recordArguments records the arguments of a tool as an object.
func (o *operation) recordArguments(arguments json.RawMessage) {
	if !o.wanted() || len(arguments) == 0 {
		return
	}
	value := object(string(arguments), "text")
	if clean := o.clean(); clean != nil {
		value = redact.JSON(value, clean)
	}
	o.record(keyArguments, shorten(value, o.telemetry.options.ContentBytes))
}

// object returns text if it is a JSON object, and otherwise an object with text
// as its only member: a model may write anything as arguments, and a tool may
// return a list.
func object(text, member string) json.RawMessage {
	text = strings.TrimSpace(valid(text))
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return encode(map[string]string{member: text})
}

// recordResult records the result of a tool as an object: the structured content
// if there is any, and otherwise all contents.
func (o *operation) recordResult(contents []canister.Content) {
	if !o.wanted() || len(contents) == 0 {
		return
	}
	clean := o.clean()
	if clean != nil {
		contents = redact.Contents(contents, clean)
	}
	most := o.telemetry.options.ContentBytes
	for _, content := range contents {
		if c, ok := content.(canister.StructuredContent); ok {
			o.record(keyResult, shorten(object(string(c.JSON), "value"), most))
			return
		}
	}
	o.record(keyResult, shorten(encode(map[string][]part{"content": partsOf(contents)}), most))
}

// recordRequest records the input of a model: the instructions at the start of
// the history, the rest of the history, and the available tools.
func (c *Chat) recordRequest(request ChatRequest) {
	if !c.wanted() {
		return
	}
	history, clean, most := request.History, c.clean(), c.telemetry.options.ContentBytes
	var instructions []part
	for len(history) > 0 {
		supervisor, ok := history[0].(canister.Supervisor)
		if !ok {
			break
		}
		instructions = append(instructions, partsOf(cleaned(supervisor.Content, clean))...)
		history = history[1:]
	}
	if len(instructions) > 0 {
		c.record(keyInstructions, join(len(instructions), most, false, func(i int) json.RawMessage { return encode(instructions[i]) },
			func(left int) json.RawMessage { return encode(part{Type: omitted, Name: fmt.Sprint(left, " parts")}) }))
	}
	if turns := turnsOf(history); len(turns) > 0 {
		calls := callsOf(history)
		c.record(keyInputMessages, join(len(turns), most, true, func(i int) json.RawMessage { return encode(messageOf(turns[i], calls, clean)) },
			func(left int) json.RawMessage {
				return encode(message{Role: "system", Parts: []part{{Type: omitted, Name: fmt.Sprint(left, " earlier messages")}}})
			}))
	}
	if tools := request.Tools; len(tools) > 0 {
		c.record(keyDefinitions, join(len(tools), most, false, func(i int) json.RawMessage {
			text := tools[i].Description
			if clean != nil {
				text = clean(text)
			}
			return encode(tool{Type: "function", Name: tools[i].Name, Description: bounded(text, maxName)})
		}, func(left int) json.RawMessage { return encode(tool{Type: omitted, Name: fmt.Sprint(left, " tools")}) }))
	}
}

// recordAnswer records the model's answer.
func (c *Chat) recordAnswer(result ChatResult) {
	if !c.wanted() || len(result.Message.Content)+len(result.Invocations) == 0 {
		return
	}
	turn := []canister.Canister{result.Message}
	for _, invocation := range result.Invocations {
		turn = append(turn, invocation)
	}
	answer := messageOf(turn, nil, c.clean())
	answer.Finish = finishName(canister.Finish(c.text(string(result.Message.Finish))))
	c.record(keyOutputMessages, join(1, c.telemetry.options.ContentBytes, false,
		func(int) json.RawMessage { return encode(answer) }, func(int) json.RawMessage { return nil }))
}

// encode returns the JSON form of value, without HTML escapes. All members of
// value must have a JSON form.
func encode(value any) json.RawMessage {
	text, _ := jsontext.Encode(value)
	return text
}
