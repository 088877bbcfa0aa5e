// SPDX-License-Identifier: Apache-2.0

// Embed is a conversation in a program of one's own: a Go function and an MCP
// server as tools, a model, and the loop over what happens.
//
//	go run ./examples/embed "QUESTION" COMMAND [ARG...]
//
// COMMAND starts the MCP server, for example npx -y
// @modelcontextprotocol/server-filesystem . and the model is OpenAI's, with the
// key in OPENAI_API_KEY, or that of the server at OPENAI_BASE_URL.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

type place struct {
	Zone string `json:"zone" jsonschema:"IANA name of a time zone, such as Europe/Oslo"`
}

// timeIn is an ordinary function. The model does not see the text of its error; use
// invoker.Failf for that.
func timeIn(_ context.Context, p place) (string, error) {
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return "", err
	}
	return time.Now().In(zone).Format(time.RFC1123), nil
}

func ask(ctx context.Context, question string, server []string) error {
	clock, err := invoker.New("clock", "Tell the date and time in a zone.", timeIn, nil)
	if err != nil {
		return err
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", clock), mcpadapter.Command("mcp", server[0], server[1:]...))
	if err != nil {
		return err
	}
	defer roster.Close(context.WithoutCancel(ctx))
	if err := roster.Connect(ctx); err != nil { // fails if a server cannot be reached; a turn skips it
		return err
	}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: os.Getenv("OPENAI_BASE_URL")})
	if err != nil {
		return err
	}
	conversation := converse.New(model, roster, nil)
	for event, err := range conversation.Send(ctx, canister.Text(question)) {
		if err != nil {
			return err
		}
		if delta, ok := event.(converse.TextDelta); ok {
			fmt.Print(delta.Text)
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, `usage: embed "QUESTION" COMMAND [ARG...]`)
		os.Exit(2)
	}
	if err := ask(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println()
}
