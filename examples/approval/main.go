// SPDX-License-Identifier: Apache-2.0

// Approval asks a person at the terminal before it runs a tool that may change something.
// Read-only tools run without a question.
//
//	go run ./examples/approval DIRECTORY "REQUEST"
//
// The model can list the files of the directory, and remove files if the person agrees.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/approve"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
)

func run(ctx context.Context, directory, request string) error {
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: os.Getenv("OPENAI_BASE_URL")})
	if err != nil {
		return err
	}
	files, err := fileTools(directory)
	if err != nil {
		return err
	}
	roster, err := ensemble.NewRoster(ensemble.Local("files", files...))
	if err != nil {
		return err
	}
	defer roster.Close(context.WithoutCancel(ctx))
	turn, err := converse.New(model, roster, &converse.Options{
		Approve: approve.ExceptReads(approve.OnTerminal(os.Stdin, os.Stderr)),
	}).Ask(ctx, canister.Text(request))
	fmt.Println(turn.Text())
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, `usage: approval DIRECTORY "REQUEST"`)
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
