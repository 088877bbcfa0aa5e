// SPDX-License-Identifier: Apache-2.0

// Resume runs one step of a conversation and exits. The folder that stores the
// conversation determines the next step, so another process can run it, even on another
// day.
//
//	go run ./examples/resume FOLDER "QUESTION"   begins
//	go run ./examples/resume FOLDER              continues; repeat until it prints Done
//
// A program that does not need to stop after each step calls Run instead of Step. It can
// still be killed at any time: see docs/durability.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history/files"
)

func step(ctx context.Context, folder, question string) error {
	store, err := files.Open(folder, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	talk, err := conversation(&converse.Options{ID: "talk", Log: store, OwnRoster: true})
	if err != nil {
		return err
	}
	defer talk.Close(ctx)
	if question != "" {
		if err := talk.Add(ctx, canister.User{Content: canister.Texts(question)}); err != nil {
			return err
		}
	}
	for event, err := range talk.Step(ctx) {
		if err != nil {
			return err
		}
		show(event)
	}
	fmt.Printf("next: %T\n", talk.Next())
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, `usage: resume FOLDER ["QUESTION"]`)
		os.Exit(2)
	}
	if err := step(ctx, os.Args[1], strings.Join(os.Args[2:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
