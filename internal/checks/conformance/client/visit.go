// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// visit uses everything that the server offers.
func visit(ctx context.Context, roster *ensemble.Roster, task task) error {
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, aside := range catalog.Aside() {
		fmt.Fprintf(os.Stderr, "set aside: %s: %s\n", aside.Tool, aside.Reason)
	}
	var errs []error
	for _, call := range calls(catalog, task) {
		errs = append(errs, call.make(ctx, catalog))
	}
	errs = append(errs, readOne(ctx, roster), promptOne(ctx, roster))
	return errors.Join(errs...)
}

// toolCall is one call to make.
type toolCall struct {
	name      string // for the model
	arguments json.RawMessage
}

// calls returns the calls of the task, or one for each tool.
func calls(catalog *ensemble.Catalog, task task) []toolCall {
	var list []toolCall
	for _, c := range task.ToolCalls {
		list = append(list, toolCall{ensemble.NameFor("server", c.Name), c.Arguments})
	}
	if list != nil {
		return list
	}
	for _, tool := range catalog.Tools() {
		list = append(list, toolCall{tool.Name(), arguments(catalog, tool)})
	}
	return list
}

// arguments makes up arguments that the tool's schema allows. A tool that expects a
// schema as its argument gets the schema of another tool, byte for byte.
func arguments(catalog *ensemble.Catalog, tool *ensemble.Tool) json.RawMessage {
	const echo, subject = "json_schema_echo", "json_schema_2020_12_tool"
	if tool.Definition().Name != echo {
		return sample(tool.Definition().InputSchema, optional)
	}
	if other, ok := catalog.Find(ensemble.NameFor("server", subject)); ok {
		schema := other.Definition().InputSchema
		return json.RawMessage(fmt.Sprintf(`{"schema":%s}`, schema))
	}
	return json.RawMessage(`{}`)
}

// make makes the call. If the server refuses the arguments and they can be repaired, it
// makes the call a second time, as a model would. A tool that fails is only logged; any
// other failure is an error of this client.
func (c toolCall) make(ctx context.Context, catalog *ensemble.Catalog) error {
	tool, ok := catalog.Find(c.name)
	if !ok {
		return fmt.Errorf("%s: no such tool", c.name)
	}
	output, err := c.invoke(ctx, tool)
	if repaired := withoutNulls(c.arguments); err != nil && invoker.AsFailure(err).Code == invoker.InvalidArguments && len(repaired) < len(c.arguments) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", c.name, err)
		c.arguments = repaired
		output, err = c.invoke(ctx, tool)
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, text(output.Content))
		return nil
	}
	failure := invoker.AsFailure(err)
	if failure.Code == invoker.ExecutionFailed {
		fmt.Fprintf(os.Stderr, "%s: %v\n", c.name, failure)
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.name, c.arguments, failure)
}

func (c toolCall) invoke(ctx context.Context, tool *ensemble.Tool) (invoker.Output, error) {
	return tool.Invoke(ctx, &invoker.Call{ID: c.name, Arguments: c.arguments, Progress: func(invoker.Progress) {}})
}

// withoutNulls removes the members that are null.
func withoutNulls(arguments json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(arguments, &m) != nil {
		return arguments
	}
	maps.DeleteFunc(m, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	out, err := json.Marshal(m)
	if err != nil {
		return arguments
	}
	return out
}

func readOne(ctx context.Context, roster *ensemble.Roster) error {
	all, err := roster.Resources(ctx)
	if err != nil || len(all.Resources) == 0 {
		return err
	}
	_, err = roster.ReadResource(ctx, all.Resources[0].URI)
	return err
}

func promptOne(ctx context.Context, roster *ensemble.Roster) error {
	all, err := roster.Prompts(ctx)
	if err != nil || len(all.Prompts) == 0 {
		return err
	}
	_, err = roster.GetPrompt(ctx, all.Prompts[0].FullName(), nil)
	return err
}
