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
	Annotations  struct {
		Title           string `json:"title"`
		ReadOnlyHint    bool   `json:"readOnlyHint"`
		IdempotentHint  bool   `json:"idempotentHint"`
		DestructiveHint *bool  `json:"destructiveHint"`
		OpenWorldHint   *bool  `json:"openWorldHint"`
	}
	Execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	metadata canister.Fields
}

// Definition returns the tool as its server describes it.
func (t *Tool) Definition() invoker.Definition {
	def := invoker.Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.InputSchema,
		OutputSchema: t.OutputSchema,
		Hints: invoker.Hints{
			ReadOnly:    t.Annotations.ReadOnlyHint,
			Idempotent:  t.Annotations.IdempotentHint,
			Destructive: t.Annotations.DestructiveHint,
			OpenWorld:   t.Annotations.OpenWorldHint,
		},
		Metadata: t.metadata,
	}
	if def.Title == "" {
		def.Title = t.Annotations.Title
	}
	return def
}

// NeedsTask reports whether the tool can only be called as a task. What it says about tasks counts
// only if the capabilities of its server have tasks.requests.tools.call (MCP 2025-11-25,
// basic/utilities/tasks § Tool-Level Negotiation).
func (t *Tool) NeedsTask(capabilities json.RawMessage) bool {
	for _, name := range []string{"tasks", "requests", "tools", "call"} {
		capabilities = wire.Member(capabilities, name)
	}
	return bytes.HasPrefix(capabilities, []byte{'{'}) && t.Execution.TaskSupport == "required"
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
	// Fields of the wrong type are ignored.
	_ = json.Unmarshal(rest["title"], &t.Title)
	_ = json.Unmarshal(rest["description"], &t.Description)
	_ = json.Unmarshal(rest["annotations"], &t.Annotations)
	_ = json.Unmarshal(rest["execution"], &t.Execution)
	t.metadata = Metadata(rest, "name", "description", "inputSchema", "outputSchema")
	return t, nil
}
