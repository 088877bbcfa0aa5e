// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// A prompt whose writer asks a person has all the time that the person takes.
func TestPromptsWaitForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := local.Library{Prompts: []local.Prompt{{
			Prompt: ensemble.Prompt{Name: "greet"},
			Get: func(ctx context.Context, _ map[string]string) (*ensemble.Messages, error) {
				answer, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Message: "Who?"})
				if err != nil {
					return nil, err
				}
				return &ensemble.Messages{Description: string(answer.Action)}, nil
			},
		}}}.Source()
		roster, err := ensemble.NewRoster(ensemble.New("local", library, &ensemble.Options{CallTimeout: time.Second, CallLimit: 2 * time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		defer roster.Close(t.Context())
		paused := 0
		ctx := invoker.WithCall(t.Context(), &invoker.Call{
			Person: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				select {
				case <-time.After(time.Hour):
					return &invoker.ElicitResult{Action: invoker.Decline}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			Pause: func() func() { paused++; return func() { paused++ } },
		})
		messages, err := roster.GetPrompt(ctx, ensemble.NameFor("local", "greet"), nil)
		if err != nil || messages.Description != "decline" || paused != 2 {
			t.Errorf("messages = %+v, err = %v, paused %d times", messages, err, paused)
		}
	})
}
