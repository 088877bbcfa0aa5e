// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
)

// hangs is a function of the program that does not return until it is let go, from
// its n-th call on.
type hangs struct {
	gate  chan struct{}
	calls atomic.Int64
	from  int64
}

func newHangs(from int64) *hangs { return &hangs{gate: make(chan struct{}), from: from} }

func (h *hangs) wait() {
	if h.calls.Add(1) >= h.from {
		<-h.gate
	}
}

// hangingLog hangs in one of its methods.
type hangingLog struct {
	*history.Memory
	append, read func()
}

func (l *hangingLog) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	l.append()
	return l.Memory.Append(ctx, conversation, length, canisters...)
}

func (l *hangingLog) Read(ctx context.Context, conversation string, from int) iter.Seq2[canister.Canister, error] {
	l.read()
	return l.Memory.Read(ctx, conversation, from)
}

// hangingModel hangs before it answers.
type hangingModel struct {
	*conversetest.Script
	hang func()
}

func (m *hangingModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	m.hang()
	return m.Script.Exchange(ctx, request)
}

// A function of the program that does not return does not hold Send much longer than
// its context lasts. It is named, and the conversation goes on when it has returned.
func TestFunctionsThatHang(t *testing.T) {
	nothing := func() {}
	for name, make := range map[string]func(h *hangs, options *converse.Options) converse.Model{
		"Options.Redact": func(h *hangs, options *converse.Options) converse.Model {
			options.Redact = func(text string) string { h.wait(); return text }
			return twoCalls()
		},
		"Options.Spill": func(h *hangs, options *converse.Options) converse.Model {
			options.Limits.ResultBytes = 4
			options.Spill = func(context.Context, string, canister.Content) (canister.LinkContent, error) {
				h.wait()
				return canister.LinkContent{}, nil
			}
			return twoCalls()
		},
		"Options.Log": func(h *hangs, options *converse.Options) converse.Model {
			options.ID, options.Log = "talk", &hangingLog{history.NewMemory(), h.wait, nothing}
			return twoCalls()
		},
		"Options.Log ": func(h *hangs, options *converse.Options) converse.Model {
			options.ID, options.Log = "talk", &hangingLog{history.NewMemory(), nothing, h.wait}
			return twoCalls()
		},
		"Model.Exchange": func(h *hangs, _ *converse.Options) converse.Model { return &hangingModel{twoCalls(), h.wait} },
	} {
		for from := int64(1); from <= 3; from++ {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, options := newHangs(from), converse.Options{}
					talk := converse.New(make(h, &options), newRoster(t, echo("echo")), &options)
					hung(t, talk, h, strings.TrimSpace(name))
				})
			})
		}
	}
}

// hung sends a message, of which a function hangs, and others after it was let go.
func hung(t *testing.T, talk *converse.Conversation, h *hangs, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	_, err := talk.Ask(ctx, canister.Text("Go."))
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("Send took %v", took)
	}
	if h.calls.Load() < h.from {
		close(h.gate)
		return // it was not called that often
	}
	if err == nil || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "withheld") {
		t.Errorf("the error is %v, and does not name %s", err, name)
	}
	close(h.gate)
	synctest.Wait()
	for range 2 {
		if _, err := talk.Ask(t.Context(), canister.Text("Go on.")); err != nil {
			t.Errorf("when it has returned: %v", err)
		}
	}
	sound(t, talk.History())
	if err := talk.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Close from a function that the work waits for is an error, and no deadlock.
func TestCloseFromWithin(t *testing.T) {
	for _, name := range []string{"Options.Approve", "Options.Log", "Model.Exchange"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var talk *converse.Conversation
				var once atomic.Bool
				closed := make(chan error, 1)
				end := func(from string) {
					if from == name && !once.Swap(true) {
						closed <- talk.Close(context.Background())
					}
				}
				talk = converse.New(&hangingModel{twoCalls(), func() { end("Model.Exchange") }}, newRoster(t, echo("echo")), &converse.Options{
					Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
						end("Options.Approve")
						return converse.Allow(), nil
					},
					ID: "talk", Log: &hangingLog{history.NewMemory(), func() { end("Options.Log") }, func() {}},
				})
				if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(),
					"closed") && !strings.Contains(err.Error(), name) {
					t.Errorf("Send says %v", err)
				}
				if err := <-closed; err == nil || !strings.Contains(err.Error(), "not returned: "+name) {
					t.Errorf("Close says %v", err)
				}
				synctest.Wait()
				if err := talk.Close(context.Background()); err != nil {
					t.Errorf("a later Close says %v", err)
				}
			})
		})
	}
}
