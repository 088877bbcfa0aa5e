// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Tool is a tool as sent by the server. The SDK decodes schemas into maps, which
// loses the order of members and the precision of numbers.
type Tool struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	taskSupport  string // of execution
	hints        invoker.Hints
	metadata     canister.Fields
}

// Definition returns the tool as its server describes it.
func (t *Tool) Definition() invoker.Definition {
	return invoker.Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.InputSchema,
		OutputSchema: t.OutputSchema,
		Hints:        t.hints,
		Metadata:     t.metadata,
	}
}

// NeedsTask reports whether the tool can only be called as a task. What it says about tasks counts
// only if the capabilities of its server have tasks.requests.tools.call (MCP 2025-11-25,
// basic/utilities/tasks § Tool-Level Negotiation).
func (t *Tool) NeedsTask(capabilities json.RawMessage) bool {
	for _, name := range []string{"tasks", "requests", "tools", "call"} {
		capabilities = wire.Member(capabilities, name)
	}
	return bytes.HasPrefix(capabilities, []byte{'{'}) && t.taskSupport == "required"
}

// ReadTool decodes a tool; members without a field go into its metadata.
func ReadTool(raw json.RawMessage) (*Tool, error) {
	rest, err := wire.Members(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON object")
	}
	t := &Tool{InputSchema: rest["inputSchema"], OutputSchema: rest["outputSchema"]}
	if json.Unmarshal(rest["name"], &t.Name) != nil {
		return nil, fmt.Errorf("its name is not a string")
	}
	read(rest, "title", &t.Title)
	read(rest, "description", &t.Description)
	annotations, _ := wire.Members(rest["annotations"]) // a struct would take "ReadOnlyHint" for "readOnlyHint"
	if t.Title == "" {
		read(annotations, "title", &t.Title)
	}
	read(annotations, "readOnlyHint", &t.hints.ReadOnly)
	read(annotations, "idempotentHint", &t.hints.Idempotent)
	read(annotations, "destructiveHint", &t.hints.Destructive)
	read(annotations, "openWorldHint", &t.hints.OpenWorld)
	execution, _ := wire.Members(rest["execution"])
	read(execution, "taskSupport", &t.taskSupport)
	t.metadata = Metadata(rest, "name", "description", "inputSchema", "outputSchema")
	return t, nil
}

// read decodes a member of an object, unless it is of the wrong type.
func read[T any](members map[string]json.RawMessage, name string, to *T) {
	var value T
	if json.Unmarshal(members[name], &value) == nil {
		*to = value
	}
}
