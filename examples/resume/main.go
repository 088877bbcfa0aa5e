// SPDX-License-Identifier: Apache-2.0

// Resume does one step of a conversation and leaves. What comes next is
// determined by the file that it keeps the conversation in, so that another
// process, on another day, does the next step.
//
//	go run ./examples/resume FILE "QUESTION"   begins
//	go run ./examples/resume FILE              goes on, until it says Done
//
// A program that does not want to stop after each step calls Continue in place
// of Step, and can be killed at any time all the same: a call that was under way
// is then made once more, with the identity that it had.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

func step(ctx context.Context, path, question string) error {
	history, err := read(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	talk, err := conversation(&converse.Options{
		History:   history,
		OwnRoster: true,
		// Called before the canisters enter the history: what is not on disk
		// did not happen.
		Journal: func(_ context.Context, added []canister.Canister) error {
			return errors.Join(canister.Encode(file, added...), file.Sync())
		},
	})
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
		fmt.Fprintln(os.Stderr, `usage: resume FILE ["QUESTION"]`)
		os.Exit(2)
	}
	if err := step(ctx, os.Args[1], strings.Join(os.Args[2:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
