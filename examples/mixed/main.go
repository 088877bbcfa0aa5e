// SPDX-License-Identifier: Apache-2.0

// Mixed uses Go functions together with an MCP server. The functions read the settings of
// their ensemble. Functions and server report progress, which is printed as it arrives.
//
//	go run ./examples/mixed "REQUEST" COMMAND [ARG...]
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

func run(ctx context.Context, request string, server []string) error {
	checkIn, err := invoker.New("check_in", "Check items in for the flight.", checkIn, nil)
	if err != nil {
		return err
	}
	desk := ensemble.New("desk", ensemble.LocalSource(checkIn), &ensemble.Options{Settings: airline{MaxItems: 5}})
	luggage := ensemble.New("luggage", mcpadapter.Stdio(server, nil), &ensemble.Options{CallTimeout: time.Minute})
	roster, err := ensemble.NewRoster(desk, luggage)
	if err != nil {
		return err
	}
	defer roster.Close(context.WithoutCancel(ctx))
	if err := roster.Connect(ctx); err != nil { // otherwise turns run without the tools of a broken server
		return err
	}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: os.Getenv("OPENAI_BASE_URL")})
	if err != nil {
		return err
	}
	for event, err := range converse.New(model, roster, nil).Send(ctx, canister.Text(request)) {
		if err != nil {
			return err
		}
		show(event)
	}
	return nil
}

func show(event converse.Event) {
	switch event := event.(type) {
	case converse.InvocationProgressed:
		p := event.Progress
		fmt.Printf("%s: %v of %v, %s\n", event.Invocation.Name, p.Done, p.Total, p.Message)
	case converse.InvocationCompleted:
		fmt.Printf("%s: %s\n", event.Invocation.Name, canister.TextOf(event.Result.Content))
	case converse.TurnCompleted:
		fmt.Println(event.Turn.Text())
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, `usage: mixed "REQUEST" COMMAND [ARG...]`)
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
