// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// conversation has a tool whose result differs each time. This shows that the next
// process reads the number that the previous one rolled.
func conversation(options *converse.Options) (*converse.Conversation, error) {
	roll, err := invoker.New("roll", "Roll a die.",
		func(context.Context, struct{}) (string, error) { return fmt.Sprint(1 + rand.IntN(1_000_000)), nil }, nil)
	if err != nil {
		return nil, err
	}
	roster, err := ensemble.NewRoster(ensemble.Local("dice", roll))
	if err != nil {
		return nil, err
	}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: os.Getenv("OPENAI_BASE_URL")})
	if err != nil {
		return nil, err
	}
	return converse.New(model, roster, options), nil
}

func show(event converse.Event) {
	switch event := event.(type) {
	case converse.InvocationRequested:
		fmt.Println("asked for", event.Invocation.Name)
	case converse.InvocationCompleted:
		fmt.Println("result:", canister.TextOf(event.Result.Content))
	case converse.MessageCompleted:
		fmt.Println("model:", canister.TextOf(event.Message.Content))
	}
}
