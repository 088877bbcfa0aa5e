// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// told expects that a request ends with a result, and some words in its code or
// its text.
func told(words string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		last := request.History[len(request.History)-1]
		result, ok := last.(canister.Result)
		if !ok || !strings.Contains(result.Code+canister.TextOf(result.Content), words) {
			return fmt.Errorf("the model was told %+v, not %q", last, words)
		}
		return nil
	}
}

var askWeather = conversetest.Line{Calls: []conversetest.Call{{Name: "weather__report", Arguments: `{"city":"Oslo"}`}}}

// The model plays a script, and the server is a fake that answers.
func TestAdvice(t *testing.T) {
	report := ensembletest.Returns("report", "snow, -3 °C")
	model := conversetest.NewScript(askWeather, conversetest.Line{Expect: told("snow"), Text: "Boots."})
	advice, err := advise(t.Context(), model, ensemble.Local("weather", report), "Oslo")
	if advice != "Boots." || err != nil {
		t.Errorf("advise = %q, %v", advice, err)
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
	if n := report.Calls(); n != 1 {
		t.Errorf("the weather was asked for %d times", n)
	}
}

// The server dies while it works. The model hears of it, and can say so.
func TestServerDies(t *testing.T) {
	source := ensembletest.NewSource()
	source.SetTools(ensembletest.NewTool("report", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		source.Lose(errors.New("it crashed"))
		<-ctx.Done() // as a call does whose answer will never come
		return invoker.Output{}, ctx.Err()
	}))
	model := conversetest.NewScript(askWeather, conversetest.Line{Expect: told(string(invoker.OutcomeUnknown)), Text: "I cannot tell."})
	advice, err := advise(t.Context(), model, ensemble.New("weather", source, nil), "Oslo")
	if advice != "I cannot tell." || err != nil {
		t.Errorf("advise = %q, %v", advice, err)
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
	if n := source.Connections(); n != 0 {
		t.Errorf("%d connections were left open", n)
	}
}

// A model that asks for the weather endlessly gives no advice.
func TestNoAdvice(t *testing.T) {
	model := conversetest.NewScript(askWeather, askWeather, askWeather, askWeather)
	_, err := advise(t.Context(), model, ensemble.Local("weather", ensembletest.Returns("report", "rain")), "Oslo")
	if err == nil || !strings.Contains(err.Error(), "exchange_limit") {
		t.Errorf("advise: %v", err)
	}
}
