// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// Questions of the suite, as JSON Schemas of their answers.
const (
	nameSchema     = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorSchema    = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	confirmSchema  = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	contextSchema  = `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`
	usernameSchema = `{"type":"object","properties":{
		"username":{"type":"string","description":"User's response"},
		"email":{"type":"string","description":"User's email address"}
	},"required":["username","email"]}`
	// SEP-1034: a default for each primitive type.
	defaultsSchema = `{"type":"object","properties":{
		"name":{"type":"string","description":"User name","default":"John Doe"},
		"age":{"type":"integer","description":"User age","default":30},
		"score":{"type":"number","description":"User score","default":95.5},
		"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","description":"Verification status","default":true}
	}}`
	// SEP-1330: each form of a choice of one or several options.
	enumsSchema = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[
			{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[
			{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}
	}}`
)

// askingTools returns the tools that ask the user or the model of the caller.
func askingTools() []invoker.Invoker {
	return []invoker.Invoker{
		tool("test_elicitation", func(ctx context.Context, in struct {
			Message string `json:"message"`
		}) (string, error) {
			return answered(ask(ctx, "user", in.Message, usernameSchema))
		}),
		tool("test_sampling", func(ctx context.Context, in struct {
			Prompt string `json:"prompt"`
		}) (string, error) {
			text, err := sampled(ctx, "reply", in.Prompt)
			return "LLM response: " + text, err
		}),
		asking("test_elicitation_sep1034_defaults", "user", "Please review and update the form fields with defaults", defaultsSchema),
		asking("test_elicitation_sep1330_enums", "choice", "Please select options", enumsSchema),
		asking("test_streaming_elicitation", "user_name", "What is your name?", nameSchema),
		asking("test_input_required_result_elicitation", "user_name", "What is your name?", nameSchema),
		asking("test_input_required_result_request_state", "confirm", "Please confirm", confirmSchema),
		asking("test_input_required_result_tampered_state", "confirm", "Please confirm", confirmSchema),
		tool("test_input_required_result_sampling", func(ctx context.Context, _ nothing) (string, error) {
			return sampled(ctx, "capital_question", "What is the capital of France?")
		}),
		tool("test_missing_capability", func(ctx context.Context, _ nothing) (string, error) {
			return sampled(ctx, "greeting", "Say hello.")
		}),
		tool("test_input_required_result_list_roots", func(ctx context.Context, _ nothing) (string, error) {
			return listed(ctx)
		}),
		tool("test_input_required_result_multiple_inputs", multipleInputs),
		tool("test_input_required_result_multi_round", multiRound),
		tool("test_input_required_result_capabilities", capabilities),
	}
}

// asking returns a tool that asks one question.
func asking(name, key, message, schema string) invoker.Invoker {
	return tool(name, func(ctx context.Context, _ nothing) (string, error) {
		return answered(ask(ctx, key, message, schema))
	})
}

// ask asks the user a question whose answer must match the schema.
func ask(ctx context.Context, key, message, schema string) (*invoker.ElicitResult, error) {
	return invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Key: key, Message: message, Schema: json.RawMessage(schema)})
}

func answered(result *invoker.ElicitResult, err error) (string, error) {
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(result.Content)
	return fmt.Sprintf("User response: action=%s, content=%s", result.Action, content), err
}

// field returns one text field of an accepted answer.
func field(result *invoker.ElicitResult, name string) string {
	text, _ := result.Content[name].(string)
	return text
}

func sampled(ctx context.Context, key, prompt string) (string, error) {
	result, err := invoker.CallFrom(ctx).Sample(ctx, &invoker.SampleRequest{
		Key: key, MaxTokens: 100,
		Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts(prompt)}},
	})
	if err != nil {
		return "", err
	}
	return result.Text, nil
}

// multipleInputs asks three questions at the same time.
func multipleInputs(ctx context.Context, _ nothing) (string, error) {
	var name, greeting, roots string
	err := together(
		func() error {
			result, err := ask(ctx, "user_name", "What is your name?", nameSchema)
			if err == nil {
				name = field(result, "name")
			}
			return err
		},
		func() (err error) { greeting, err = sampled(ctx, "greeting", "Generate a greeting"); return err },
		func() (err error) { roots, err = listed(ctx); return err },
	)
	return fmt.Sprintf("%s, %s! %s", greeting, name, roots), err
}

func together(functions ...func() error) error {
	failures := make([]error, len(functions))
	var all sync.WaitGroup
	for i, function := range functions {
		all.Go(func() { failures[i] = function() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// multiRound asks a second question after the first.
func multiRound(ctx context.Context, _ nothing) (string, error) {
	first, err := ask(ctx, "step1", "Step 1: What is your name?", nameSchema)
	if err != nil {
		return "", err
	}
	second, err := ask(ctx, "step2", "Step 2: What is your favorite color?", colorSchema)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s likes %s.", field(first, "name"), field(second, "color")), nil
}

// capabilities asks only for input that the client supports.
func capabilities(ctx context.Context, _ nothing) (string, error) {
	call := invoker.CallFrom(ctx)
	switch {
	case call.Person != nil:
		return answered(ask(ctx, "user_name", "What is your name?", nameSchema))
	case call.Model != nil:
		return sampled(ctx, "greeting", "Generate a short greeting")
	}
	return "The client can be asked nothing.", nil
}

// listed reports how many roots the client has.
func listed(ctx context.Context) (string, error) {
	roots, err := server.ClientRoots(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The client has %d roots.", len(roots)), nil
}
