// SPDX-License-Identifier: Apache-2.0

// Fromtoml makes a conversation of a TOML file, with one thing changed between
// reading the file and using it.
//
//	go run ./examples/fromtoml examples/fromtoml/consort.toml "QUESTION"
//
// What is wrong with a file is told all at once, with lines and columns.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
)

func ask(ctx context.Context, path, question string) error {
	settings, err := config.Load(path, nil)
	if err != nil {
		return err
	}
	// Settings are plain structs that were checked. Whatever a program knows
	// better than its file is set here.
	settings.Conversation.Exchanges = 4
	parts, err := config.Assemble(settings, nil)
	if err != nil {
		return err
	}
	defer parts.Close(context.WithoutCancel(ctx))
	if err := parts.Roster.Connect(ctx); err != nil { // fails if a server cannot be reached; a turn skips it
		return err
	}

	talk := converse.New(parts.Model, parts.Roster, parts.Options)
	turn, err := talk.Ask(ctx, canister.Text(question))
	if err != nil {
		return err
	}
	if turn.Reason == converse.ReasonWaiting { // without a log, an answer must come before the program ends
		return fmt.Errorf("the turn waits for %d answer(s): set ID and Log of parts.Options, or use other rules", len(turn.Waits))
	}
	fmt.Println(turn.Text())
	if turn.Reason.Limited() {
		fmt.Fprintln(os.Stderr, "the turn ended early:", turn.Reason)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, `usage: fromtoml FILE "QUESTION"`)
		os.Exit(2)
	}
	if err := ask(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
