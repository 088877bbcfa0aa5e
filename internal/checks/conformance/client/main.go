// SPDX-License-Identifier: Apache-2.0

// Command client is the client under test for the protocol's conformance suite. It
// contains almost nothing specific to scenarios: it connects to the server at the URL in
// its last argument, calls every tool on offer, and reads one resource and one prompt,
// all through a roster, as a conversation would. The suite passes parameters in the
// environment:
//
//	MCP_CONFORMANCE_CONTEXT           JSON: credentials, the calls to make
//	MCP_CONFORMANCE_PROTOCOL_VERSION  the version of the protocol that is tested
//
// It exits with 1 if it could not connect or could not make a call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"go.uber.org/zap"
)

// Limits of one run. The suite has its own limits, which are shorter or much longer.
const (
	connectTimeout = 40 * time.Second
	callTimeout    = 40 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: client URL")
	}
	task, err := readTask(os.Getenv("MCP_CONFORMANCE_CONTEXT"))
	if err != nil {
		return err
	}
	logger := logger()
	source, err := newSource(args[len(args)-1], task, logger)
	if err != nil {
		return err
	}
	server := ensemble.New("server", source, &ensemble.Options{
		ConnectTimeout: connectTimeout, CallTimeout: callTimeout, Required: true, Logger: logger,
	})
	roster, err := ensemble.NewRoster(server)
	if err != nil {
		return err
	}
	err = visit(ctx, roster, task)
	return errors.Join(err, roster.Close(context.WithoutCancel(ctx)))
}

// task holds the parameters that the suite passes to its client.
type task struct {
	Name         string `json:"name"` // of the scenario; used only to select client credentials
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Issuer       string `json:"issuer"`
	// ToolCalls, if not empty, replace the default of one call for each tool.
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func readTask(text string) (task, error) {
	var t task
	if text == "" {
		return t, nil
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return t, nil
}

func newSource(url string, task task, logger *zap.Logger) (ensemble.Source, error) {
	handler, err := authorization(task)
	if err != nil {
		return nil, err
	}
	return mcpadapter.HTTP(url, &mcpadapter.HTTPOptions{
		ClientOptions: mcpadapter.ClientOptions{
			ClientName: "consort-conformance", ClientVersion: "1.0.0",
			Logger:   logger,
			Protocol: pinned(os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")),
			Elicit:   answer,
			Roots:    []mcpadapter.Root{{URI: "file:///conformance", Name: "conformance"}},
			Sample:   reply, SampleTools: true,
		},
		OAuth: handler,
	}), nil
}

// pinned returns the version to request explicitly. It is empty when the newest version
// is tested, because negotiating that version is part of the test.
func pinned(version string) string {
	if version == "2026-07-28" {
		return ""
	}
	return version
}

// answer accepts every question and fills in fields without a default.
func answer(_ context.Context, request *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	var content map[string]any
	if err := json.Unmarshal(sample(request.Schema, required), &content); request.Schema != nil && err != nil {
		return nil, err
	}
	return &invoker.ElicitResult{Action: invoker.Accept, Content: content}, nil
}

// reply acts as the model. It calls the first tool of the request, and greets once it has
// the result or if it may use no tool.
func reply(_ context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
	last := request.Messages[len(request.Messages)-1] // the protocol requires at least one
	if len(request.Tools) == 0 || request.ToolChoice == invoker.ToolsNone || len(last.ToolResults) > 0 {
		return &invoker.SampleResult{Text: "Hello.", Model: "none", Finish: "endTurn"}, nil
	}
	tool := request.Tools[0]
	return &invoker.SampleResult{Model: "none", Finish: "toolUse", ToolUses: []invoker.ToolUse{
		{ID: "use-1", Name: tool.Name, Input: sample(tool.InputSchema, required)},
	}}, nil
}

func logger() *zap.Logger {
	config := zap.NewDevelopmentConfig() // to standard error
	config.DisableStacktrace, config.DisableCaller = true, true
	logger, err := config.Build()
	if err != nil {
		return zap.NewNop()
	}
	return logger
}

// text returns the text of a result, for the log.
func text(contents []canister.Content) string {
	const most = 200
	s := canister.TextOf(contents)
	return s[:min(most, len(s))]
}
