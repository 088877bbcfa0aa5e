// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// The smallest files of their kinds, as in the suite's own example.
var (
	redDot  = mustBase64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silence = mustBase64("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

// pause is the time between the reports of a tool, so that a client receives them
// separately.
const pause = 20 * time.Millisecond

type nothing struct{}

// contentTools return each kind of content, without delay.
func contentTools() []invoker.Invoker {
	image := canister.ImageContent{Data: redDot, MIME: "image/png"}
	return []invoker.Invoker{
		constant("test_simple_text", canister.Text("This is a simple text response for testing.")),
		constant("test_image_content", image),
		constant("test_audio_content", canister.AudioContent{Data: silence, MIME: "audio/wav"}),
		constant("test_embedded_resource", canister.ResourceContent{
			URI: "test://embedded-resource", MIME: "text/plain", Text: "This is an embedded resource content.",
		}),
		constant("test_multiple_content_types",
			canister.Text("Multiple content types test:"), image,
			canister.ResourceContent{
				URI: "test://mixed-content-resource", MIME: "application/json", Text: `{"test":"data","value":123}`,
			}),
		tool("test_error_handling", func(context.Context, nothing) (string, error) {
			return "", invoker.Failf(invoker.ExecutionFailed, "This tool intentionally returns an error for testing.")
		}),
	}
}

func constant(name string, content ...canister.Content) invoker.Invoker {
	return tool(name, func(context.Context, nothing) ([]canister.Content, error) { return content, nil })
}

// reportingTools send logs or progress while they run.
func reportingTools() []invoker.Invoker {
	return []invoker.Invoker{
		tool("test_tool_with_logging", func(ctx context.Context, _ nothing) (string, error) {
			for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				note(ctx, line)
				if err := rest(ctx); err != nil {
					return "", err
				}
			}
			return "Three lines were logged.", nil
		}),
		tool("test_logging_tool", func(ctx context.Context, _ nothing) (string, error) {
			note(ctx, "for those who asked for it")
			return "One line was logged for those who asked for it.", nil
		}),
		tool("test_tool_with_progress", func(ctx context.Context, _ nothing) (string, error) {
			for _, done := range []float64{0, 50, 100} {
				invoker.CallFrom(ctx).Report(invoker.Progress{Done: done, Total: 100, Message: fmt.Sprintf("%g of 100", done)})
				if err := rest(ctx); err != nil {
					return "", err
				}
			}
			return "All 100 are done.", nil
		}),
	}
}

func note(ctx context.Context, line string) {
	text, _ := json.Marshal(line) // marshaling a string never fails
	invoker.CallFrom(ctx).Note(invoker.LogEntry{Level: "info", Data: text})
}

func rest(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// schemaTools have schemas that must reach the client unchanged.
func schemaTools() []invoker.Invoker {
	return []invoker.Invoker{
		raw("json_schema_2020_12_tool", schema2020),
		raw("test_x_mcp_header", headerSchema),
	}
}

// schema2020 uses features of JSON Schema 2020-12 that simpler dialects lack (SEP-1613,
// SEP-2106).
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {
		"$anchor": "addressDef", "type": "object",
		"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
	}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// headerSchema has an argument that clients repeat in a header (SEP-2243).
const headerSchema = `{
	"type": "object",
	"properties": {
		"region": {"type": "string", "x-mcp-header": "Region"},
		"level": {"type": "integer"}
	}
}`

// raw returns a tool with a schema. The tool returns its arguments.
func raw(name, schema string) invoker.Invoker {
	definition := invoker.Definition{Name: name, Description: describe(name), InputSchema: json.RawMessage(schema)}
	return must(invoker.Raw(definition, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts("Called with " + string(call.Arguments))}, nil
	}, nil))
}
