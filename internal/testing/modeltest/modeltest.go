// SPDX-License-Identifier: Apache-2.0

// Package modeltest has what the tests of models over HTTP share: it runs exchanges, checks
// their outcomes, and connects models to servers.
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// Outcome is what came of an exchange.
type Outcome struct {
	Text, Reasoning string   // of the deltas
	Began           []string // names of the calls of the deltas
	Retries         []converse.Retry
	Reply           converse.Reply
	Replies         int
	Err             error
}

// Run has an exchange.
func Run(ctx context.Context, model converse.Model, request *converse.Request) (out Outcome) {
	for event, err := range model.Exchange(ctx, request) {
		switch event := event.(type) {
		case converse.Delta:
			out.Text += event.Text
			out.Reasoning += event.Reasoning
			if event.Invocation != "" {
				out.Began = append(out.Began, event.Invocation)
			}
		case converse.Retry:
			out.Retries = append(out.Retries, event)
		case converse.Reply:
			out.Reply = event
			out.Replies++
		}
		if err != nil {
			out.Err = err
		}
	}
	return out
}

// Check fails the test unless the outcome is the wanted one.
func Check(t *testing.T, got Outcome, want openaiserver.Want) {
	t.Helper()
	if got.Text != want.Text+want.Refusal || got.Reasoning != want.Reasoning {
		t.Errorf("deltas say %.80q and think %q, want %.80q and %q", got.Text, got.Reasoning, want.Text+want.Refusal, want.Reasoning)
	}
	if want.Problem != openaiserver.NoProblem {
		checkProblem(t, got, want)
		return
	}
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	message := got.Reply.Message
	if text := canister.TextOf(message.Content); text != want.Text+want.Refusal {
		t.Errorf("message %.80q", text)
	}
	if want.Usage == nil != (message.Usage == nil) {
		t.Errorf("usage %v, want %v", message.Usage, want.Usage)
	} else if u := message.Usage; u != nil && (u.Input != int64(want.Usage.PromptTokens) || u.Output != int64(want.Usage.CompletionTokens)) {
		t.Errorf("usage %+v, want %+v", u, want.Usage)
	}
	if finish := wantFinish(want); message.Finish != finish {
		t.Errorf("finish %q, want %q", message.Finish, finish)
	}
	checkCalls(t, got, want.Calls)
}

func checkProblem(t *testing.T, got Outcome, want openaiserver.Want) {
	t.Helper()
	var failed *converse.ModelError
	if !errors.As(got.Err, &failed) || got.Replies != 0 {
		t.Fatalf("error %v and %d replies", got.Err, got.Replies)
	}
	if !strings.Contains(failed.Message, want.Message) || failed.Status != 200 {
		t.Errorf("error %v", failed)
	}
	if retry := want.Problem != openaiserver.NotAStream; failed.Retryable != retry {
		t.Errorf("retryable %v: %v", failed.Retryable, failed)
	}
}

func wantFinish(want openaiserver.Want) canister.Finish {
	switch {
	case want.Finish == "length" || want.Finish == "content_filter":
		return canister.Finish(want.Finish)
	case len(want.Calls) > 0:
		return canister.FinishInvocations
	case want.Refusal != "" || want.Finish == "refusal":
		return canister.FinishRefusal
	}
	return canister.FinishStop
}

func checkCalls(t *testing.T, got Outcome, want []openaiserver.WantCall) {
	t.Helper()
	calls := got.Reply.Invocations
	if len(calls) != len(want) || len(got.Began) != len(want) {
		t.Fatalf("%d calls, %d announced, want %d: %+v", len(calls), len(got.Began), len(want), calls)
	}
	taken := map[string]bool{}
	for i, call := range calls {
		w := want[i]
		if call.Name != w.Name || call.Arguments != w.Arguments || w.ID != "" && call.CallID != w.ID {
			t.Errorf("call %+v, want %+v", call, w)
		}
		if call.CallID == "" || taken[call.CallID] || call.ID == "" || call.Message != got.Reply.Message.ID {
			t.Errorf("identities of call %+v", call)
		}
		taken[call.CallID] = true
		if json.Valid([]byte(call.Arguments)) == w.Broken {
			t.Errorf("arguments %q, broken %v", call.Arguments, w.Broken)
		}
		if w.Extra != nil && !strings.Contains(string(call.Metadata["openaimodel.extra_content"]), string(w.Extra)) {
			t.Errorf("extra content %s, want %s", call.Metadata, w.Extra)
		}
	}
}
