// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// The limits of the request that check sends to a model.
const (
	askTimeout = 30 * time.Second
	askTokens  = 16 // OpenAI's Responses API takes no lower limit
)

// AskModels sends a request to the model and to each fallback, all at once, and records the
// outcomes in m. The models are in the order of [config.Assembly.Models].
func AskModels(ctx context.Context, screen *terminal.Screen, models []converse.Model, m *Model) {
	links := []*Link{&m.Link}
	for i := range m.Fallbacks {
		links = append(links, &m.Fallbacks[i])
	}
	var asking sync.WaitGroup
	for i, model := range models {
		line := screen.Begin("asking " + display.Line(links[i].Name))
		asking.Go(func() {
			defer line.End()
			links[i].answered(askModel(ctx, model))
		})
	}
	asking.Wait()
}

// askModel sends a model one short request, with the retries of its settings, and returns
// how long the answer took.
func askModel(ctx context.Context, model converse.Model) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no answer within %v", askTimeout))
	defer cancel()
	began := time.Now()
	request := &converse.Request{
		History:   []canister.Canister{canister.User{Head: canister.Head{ID: rand.Text(), Time: began}, Content: canister.Texts("Reply with the word OK.")}},
		Tools:     &converse.Toolset{},
		MaxTokens: askTokens,
		NewID:     rand.Text,
	}
	var before error
	for event, err := range model.Exchange(ctx, request) {
		switch event := event.(type) {
		case converse.Retry:
			before = event.Err
		case converse.Reply:
			return time.Since(began), nil
		}
		switch {
		case err == nil:
		case ctx.Err() != nil && before != nil:
			return 0, fmt.Errorf("%w; the attempt before: %w", context.Cause(ctx), before)
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		default:
			return 0, err
		}
	}
	return 0, errors.New("the answer ended too early")
}
