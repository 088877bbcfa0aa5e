// SPDX-License-Identifier: Apache-2.0

// Fakes is a small program whose tests need neither a model nor a server. See
// main_test.go.
//
//	go run ./examples/fakes CITY COMMAND [ARG...]
//	go test ./examples/fakes
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// advise is the program. The model and the ensemble are parameters, so that a test can
// replace them.
func advise(ctx context.Context, model converse.Model, weather *ensemble.Ensemble, city string) (advice string, err error) {
	roster, err := ensemble.NewRoster(weather)
	if err != nil {
		return "", err
	}
	talk := converse.New(model, roster, &converse.Options{
		Instructions: "Ask for the weather before you say what to wear.",
		Limits:       converse.Limits{Exchanges: 4},
		OwnRoster:    true,
	})
	defer talk.Close(ctx)
	turn, err := talk.Ask(ctx, canister.Text("What should I wear in "+city+"?"))
	if err != nil {
		return "", err
	}
	if turn.Reason != converse.ReasonAnswered {
		return "", fmt.Errorf("no advice for %s: %s", city, turn.Reason)
	}
	return turn.Text(), nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: fakes CITY COMMAND [ARG...]")
		os.Exit(2)
	}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: os.Getenv("OPENAI_BASE_URL")})
	if err == nil {
		var advice string
		advice, err = advise(ctx, model, mcpadapter.Command("weather", os.Args[2], os.Args[3:]...), os.Args[1])
		fmt.Println(advice)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
