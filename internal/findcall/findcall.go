// SPDX-License-Identifier: Apache-2.0

// Package findcall has what the tools find_tools and call_tool have in common, whether they
// are offered to a model or to an MCP client: definitions, arguments and results.
package findcall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
)

// The names of the tools.
const (
	FindName = "find_tools"
	CallName = "call_tool"
)

const (
	usualResults = 5
	mostResults  = 20
)

// Query are the arguments of find_tools.
type Query struct {
	Query string `json:"query" jsonschema:"what the tool does, in the words of its author, and its server, such as github create issue; or its name"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many tools to return, at most 20; 5 if it is left out" minimum:"0" maximum:"20"`
}

// max returns how many results there may be.
func (q *Query) max() int {
	if q.Limit == 0 {
		return usualResults
	}
	return min(q.Limit, mostResults)
}

// NewFind returns find_tools. Call is the name of call_tool for its callers, and servers are
// the names of the servers whose tools it finds.
func NewFind(call string, servers []string, find func(context.Context, Query) (string, error)) (invoker.Invoker, error) {
	return invoker.New(FindName, FindDescription(call, servers), find, &invoker.Options{Hints: invoker.Hints{ReadOnly: true, Idempotent: true}})
}

// FindDescription is the description of find_tools.
func FindDescription(call string, servers []string) string {
	return "Find tools by words. Most tools are not listed here: search before you conclude that something cannot be done. " +
		"Returns the definitions of the tools that fit best. Call them with " + call + ". There are tools of: " + strings.Join(servers, ", ") + "."
}

// arguments are the arguments of call_tool.
type arguments struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// callSchema is the input schema of call_tool.
var callSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"name":{"type":"string","description":"the name of the tool, as it was returned"},` +
	`"arguments":{"type":"object","description":"the arguments of the tool, as its input_schema describes them"}},` +
	`"required":["name","arguments"]}`)

// Call is call_tool. It runs only if its arguments name no tool, and says so: whoever offers it
// replaces all other calls by calls of the tool itself.
type Call struct {
	Find string // the name of find_tools for its callers
}

// Definition returns the definition of call_tool. The hints are those of a call that names no
// tool.
func (c Call) Definition() *invoker.Definition {
	return &invoker.Definition{
		Name: CallName, Description: "Call a tool that " + c.Find + " returned.", InputSchema: callSchema,
		Hints: invoker.Hints{ReadOnly: true, Idempotent: true},
	}
}

// Invoke returns an error that says what the arguments should be.
func (c Call) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, &invoker.Failure{
		Code:    invoker.InvalidArguments,
		Message: fmt.Sprintf(`The arguments must be {"name": NAME, "arguments": {…}}, with the name of a tool as %s returns it, and its arguments.`, c.Find),
	}
}

// Wrap returns the arguments of call_tool for a call. It encodes arguments as a string if they
// are not a JSON object.
func Wrap(name, text string) string {
	raw := json.RawMessage(text)
	var object map[string]json.RawMessage
	switch {
	case strings.TrimSpace(text) == "":
		raw = json.RawMessage("{}")
	case json.Unmarshal(raw, &object) != nil || object == nil:
		raw, _ = json.Marshal(text)
	}
	wrapped, err := jsontext.Encode(arguments{name, raw})
	if err != nil {
		return text // cannot happen: both are valid
	}
	return string(wrapped)
}

// Unwrap returns the name and the arguments of the tool that is called through call_tool.
// Some models write the arguments as a string that contains JSON.
func Unwrap(text string) (name, inner string, ok bool) {
	var call arguments
	if json.Unmarshal([]byte(text), &call) != nil || call.Name == "" {
		return "", "", false
	}
	if json.Unmarshal(call.Arguments, &inner) == nil {
		return call.Name, inner, true // null gives an empty string
	}
	return call.Name, string(call.Arguments), true
}
