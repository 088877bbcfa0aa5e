// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// newRoster makes a roster and closes it after the test.
func newRoster(t testing.TB, ensembles ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return roster
}

// toolOf returns a tool of an ensemble by its own name.
func toolOf(t testing.TB, e *ensemble.Ensemble, name string) *ensemble.Tool {
	t.Helper()
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Fatalf("Tools: %v", err)
	}
	for _, tool := range tools {
		if tool.Definition().Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %q", name)
	return nil
}

// invoke calls a tool and returns its text and its failure.
func invoke(ctx context.Context, tool *ensemble.Tool) (string, *invoker.Failure) {
	output, err := tool.Invoke(ctx, &invoker.Call{})
	if err == nil {
		return canister.TextOf(output.Content), nil
	}
	var failure *invoker.Failure
	if !errors.As(err, &failure) {
		failure = &invoker.Failure{Message: "no Failure: " + err.Error()}
	}
	return "", failure
}

// wantFailure checks the code of a failure.
func wantFailure(t testing.TB, failure *invoker.Failure, code invoker.Code, retryable bool) {
	t.Helper()
	switch {
	case failure == nil:
		t.Errorf("the call succeeded, want %s", code)
	case failure.Code != code || failure.Retryable != retryable:
		t.Errorf("the failure is %v (retryable %v), want %s (retryable %v)", failure, failure.Retryable, code, retryable)
	}
}

// wantState checks the state of an ensemble.
func wantState(t testing.TB, e *ensemble.Ensemble, want ensemble.State) {
	t.Helper()
	if got := e.Snapshot().State; got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}
