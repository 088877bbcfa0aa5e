// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// dies is a tool whose server dies during the first n calls.
func dies(n int, hints invoker.Hints) (source *ensembletest.Source, ids *[]string) {
	ids = new([]string)
	tool := ensembletest.NewTool("tool", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		if *ids = append(*ids, call.ID); len(*ids) > n {
			return invoker.Output{Content: canister.Texts("answer")}, nil
		}
		source.Lose(errDied)
		<-ctx.Done()
		return invoker.Output{}, ctx.Err()
	})
	tool.Def.Hints = hints
	source = ensembletest.NewSource(tool)
	return source, ids
}

func TestRepeat(t *testing.T) {
	reads, idempotent, writes := invoker.Hints{ReadOnly: true}, invoker.Hints{Idempotent: true}, invoker.Hints{}
	tests := []struct {
		name  string
		trust ensemble.Trust
		hints invoker.Hints
		dies  int
		calls int
		fails bool
	}{
		{"a read", "", reads, 1, 2, false},
		{"a read, once", "", reads, 2, 2, true},
		{"an idempotent write", "", idempotent, 1, 1, true},
		{"a write", "", writes, 1, 1, true},
		{"all: a read", ensemble.TrustAll, reads, 1, 2, false},
		{"all: an idempotent write", ensemble.TrustAll, idempotent, 1, 2, false},
		{"all: a write", ensemble.TrustAll, writes, 1, 1, true},
		{"none: a read", ensemble.TrustNone, reads, 1, 1, true},
		{"unheard of: a read", "maybe", reads, 1, 1, true},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			source, ids := dies(test.dies, test.hints)
			e := ensemble.New("e", source, &ensemble.Options{Trust: test.trust})
			output, err := toolOf(t, e, "tool").Invoke(t.Context(), &invoker.Call{ID: "key"})
			if test.fails {
				failure := invoker.AsFailure(err)
				if failure == nil || failure.Code != invoker.OutcomeUnknown || !strings.Contains(failure.Message, "find out before you call it again") {
					t.Errorf("%s: %v", test.name, failure)
				}
			} else if err != nil || canister.TextOf(output.Content) != "answer" {
				t.Errorf("%s: %v", test.name, err)
			}
			if len(*ids) != test.calls {
				t.Errorf("%s: the tool was called %d times, want %d", test.name, len(*ids), test.calls)
			}
			for _, id := range *ids {
				if id != "key" {
					t.Errorf("%s: a call had the ID %q", test.name, id)
				}
			}
			if s := e.Snapshot(); s.Repeats != test.calls-1 || s.Calls != 1 {
				t.Errorf("%s: the snapshot counts %d repeats of %d calls", test.name, s.Repeats, s.Calls)
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadOnly: a claim counts only if it is trusted.
func TestReadOnly(t *testing.T) {
	for trust, believed := range map[ensemble.Trust]bool{
		"": true, ensemble.TrustReads: true, ensemble.TrustAll: true, ensemble.TrustNone: false, "maybe": false,
	} {
		for _, claimed := range []bool{true, false} {
			tool := ensembletest.NewTool("tool", nil)
			tool.Def.Hints = invoker.Hints{ReadOnly: claimed, Idempotent: true}
			e := ensemble.New("e", ensembletest.NewSource(tool), &ensemble.Options{Trust: trust})
			if got := toolOf(t, e, "tool").ReadOnly(); got != (believed && claimed) {
				t.Errorf("trust %q, claimed %v: read-only %v", trust, claimed, got)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRepeatOfOwnFunctions: the program's own annotations are trusted, unless it says
// otherwise.
func TestRepeatOfOwnFunctions(t *testing.T) {
	own := func(hints invoker.Hints) invoker.Invoker {
		tool := ensembletest.NewTool("tool", nil)
		tool.Def.Hints = hints
		return tool
	}
	for hints, want := range map[invoker.Hints]bool{{ReadOnly: true}: true, {Idempotent: true}: true, {}: false} {
		for e, want := range map[*ensemble.Ensemble]bool{
			ensemble.Local("e", own(hints)):                                                                    want,
			ensemble.New("e", ensemble.LocalSource(own(hints)), nil):                                           want,
			ensemble.New("e", ensemble.LocalSource(own(hints)), &ensemble.Options{Trust: ensemble.TrustReads}): want,
			ensemble.New("e", ensemble.LocalSource(own(hints)), &ensemble.Options{Trust: ensemble.TrustNone}):  false,
		} {
			if got := toolOf(t, e, "tool").Repeatable(); got != want {
				t.Errorf("%+v: %v, want %v", hints, got, want)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRepeatThatCannotBeMade: the truth is told of the call that was.
func TestRepeatThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ids := dies(1, invoker.Hints{ReadOnly: true})
		e := ensemble.New("e", source, nil)
		tool := toolOf(t, e, "tool")
		source.Fail(ensembletest.Open, 1, errors.New("refused"))
		_, failure := invoke(t.Context(), tool)
		if failure == nil || failure.Code != invoker.OutcomeUnknown || len(*ids) != 1 {
			t.Errorf("%v after %d calls", failure, len(*ids))
		}
		e.Close(context.Background())
	})
}

// TestRepeatThatIsRefused: that nothing was done is true of the second call
// alone, also when the connection is not known to be lost.
func TestRepeatThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		tool := ensembletest.NewTool("tool", func(context.Context, *invoker.Call) (invoker.Output, error) {
			if calls++; calls == 1 {
				return invoker.Output{}, invoker.Failf(invoker.OutcomeUnknown, "cut off")
			}
			return invoker.Output{}, invoker.Failf(invoker.Unavailable, "refused")
		})
		tool.Def.Hints = invoker.Hints{Idempotent: true}
		e := ensemble.New("e", ensembletest.NewSource(tool), &ensemble.Options{Trust: ensemble.TrustAll})
		_, failure := invoke(t.Context(), toolOf(t, e, "tool"))
		if failure == nil || failure.Code != invoker.OutcomeUnknown || calls != 2 {
			t.Errorf("%v after %d calls", failure, calls)
		}
		e.Close(context.Background())
	})
}

// TestRepeatWithinLimits of the one call.
func TestRepeatWithinLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source *ensembletest.Source
		calls := 0
		tool := ensembletest.NewTool("tool", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			if calls++; calls == 1 {
				pause(ctx, 6*time.Second)
				source.Lose(errDied)
			}
			<-ctx.Done()
			return invoker.Output{}, ctx.Err()
		})
		tool.Def.Hints.ReadOnly = true
		source = ensembletest.NewSource(tool)
		e := ensemble.New("e", source, &ensemble.Options{CallTimeout: 8 * time.Second, CallLimit: 10 * time.Second})
		bound := toolOf(t, e, "tool")
		start := time.Now()
		_, failure := invoke(t.Context(), bound)
		wantFailure(t, failure, invoker.Timeout, true)
		if took := time.Since(start); took != 10*time.Second || calls != 2 || !strings.Contains(failure.Message, "time limit") {
			t.Errorf("%d calls in %v: %v", calls, took, failure)
		}
		e.Close(context.Background())
	})
}

// TestRepeatDoesNotWait for a connection longer than the call may take.
func TestRepeatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, _ := dies(1, invoker.Hints{ReadOnly: true})
		e := ensemble.New("e", source, &ensemble.Options{CallTimeout: 2 * time.Second})
		tool := toolOf(t, e, "tool")
		defer source.Hang(ensembletest.Open, false)()
		start := time.Now()
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, invoker.OutcomeUnknown, true)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		e.Close(context.Background())
	})
}

// TestDisconnectIsNotRepeated: a connection that was closed on request is not reopened.
func TestDisconnectIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", false)
		gate.Def.Hints.ReadOnly = true
		source := ensembletest.NewSource(gate)
		e := ensemble.New("e", source, nil)
		tool := toolOf(t, e, "gate")
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, failure := invoke(t.Context(), tool); failure == nil {
				t.Error("the call succeeded")
			}
		}()
		synctest.Wait()
		if err := e.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
		if gate.Calls() != 1 || source.Count(ensembletest.Open) != 1 {
			t.Errorf("%d calls, %d opened", gate.Calls(), source.Count(ensembletest.Open))
		}
		e.Close(context.Background())
	})
}
