// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

type events = iter.Seq2[converse.ModelEvent, error]

// broken is the model of the suite with one rule broken.
type broken struct {
	*server
	exchange func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events
	bind     func() converse.Model
	screen   func(*invoker.Definition) error
	describe func() telemetry.ModelInfo
}

func (b *broken) Exchange(ctx context.Context, request *converse.Request) events {
	if b.exchange == nil {
		return b.server.Exchange(ctx, request)
	}
	return b.exchange(ctx, request, b.server.Exchange)
}

func (b *broken) Bind() converse.Model {
	if b.bind == nil {
		return b.server
	}
	return b.bind()
}

func (b *broken) Screen(definition *invoker.Definition) error {
	if b.screen == nil {
		return nil
	}
	return b.screen(definition)
}

func (b *broken) Describe() telemetry.ModelInfo {
	if b.describe == nil {
		return telemetry.ModelInfo{Provider: "test", Name: "broken"}
	}
	return b.describe()
}

// changed passes each reply through change.
func changed(change func(*converse.Reply)) func(*broken) {
	return func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				for event, err := range exchange(ctx, request) {
					if reply, ok := event.(converse.Reply); ok {
						change(&reply)
						event = reply
					}
					if !yield(event, err) {
						return
					}
				}
			}
		}
	}
}

// asked passes each request through change.
func asked(change func(*converse.Request) *converse.Request) func(*broken) {
	return func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return exchange(ctx, change(request))
		}
	}
}

// refailed passes each error through change.
func refailed(change func(error) error) func(*broken) {
	return func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				for event, err := range exchange(ctx, request) {
					if err != nil {
						err = change(err)
					}
					if !yield(event, err) {
						return
					}
				}
			}
		}
	}
}

// heedless goes on when the context ends, or when it has ended before.
func heedless(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
	return exchange(context.WithoutCancel(ctx), request)
}

// retryable sets whether the error can be retried.
func retryable(value bool) func(*broken) {
	return refailed(func(err error) error {
		var failed *converse.ModelError
		if !errors.As(err, &failed) {
			return err
		}
		other := *failed
		other.Retryable = value
		return &other
	})
}

// breaks are defects by case and, after a space, by the part of the case that should find
// it.
var breaks = map[string]func(*broken){
	"Answer/text lost": changed(func(r *converse.Reply) {
		if text := canister.TextOf(r.Message.Content); text != "" {
			r.Message.Content = canister.Texts(strings.TrimSpace(text))
		}
	}),
	"Answer/text in-one": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				var text string
				for event, err := range exchange(ctx, request) {
					if delta, ok := event.(converse.Delta); ok {
						text += delta.Text
						continue
					}
					if !yield(converse.Delta{Text: text}, nil) || !yield(event, err) {
						return
					}
				}
			}
		}
	},
	"Answer/text after": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				for event, err := range exchange(ctx, request) {
					if !yield(event, err) {
						return
					}
				}
				yield(converse.Delta{}, nil)
			}
		}
	},
	"Answer/streamed": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				type pair struct {
					event converse.ModelEvent
					err   error
				}
				var kept []pair
				for event, err := range exchange(ctx, request) {
					kept = append(kept, pair{event, err})
				}
				for _, p := range kept {
					if !yield(p.event, p.err) {
						return
					}
				}
			}
		}
	},
	"Answer/empty": changed(func(r *converse.Reply) {
		if len(r.Message.Content) == 0 {
			r.Message.Content = canister.Texts("")
		}
	}),
	"Answer/calls order": changed(func(r *converse.Reply) { slices.Reverse(r.Invocations) }),
	"Answer/calls arguments": changed(func(r *converse.Reply) {
		each(r, func(i *canister.Invocation) { i.Arguments = strings.ReplaceAll(i.Arguments, " ", "") })
	}),
	"Answer/calls finish": changed(func(r *converse.Reply) { r.Message.Finish = canister.FinishStop }),
	"Answer/identities message": changed(func(r *converse.Reply) {
		each(r, func(i *canister.Invocation) { i.Message = "" })
	}),
	"Answer/identities own": changed(func(r *converse.Reply) { r.Message.ID = "mine" }),
	"Answer/call-ids empty": changed(func(r *converse.Reply) {
		each(r, func(i *canister.Invocation) {
			if strings.HasPrefix(i.CallID, "call_1") {
				i.CallID = ""
			}
		})
	}),
	"Answer/call-ids same":  changed(func(r *converse.Reply) { each(r, func(i *canister.Invocation) { i.CallID = "call_x" }) }),
	"Answer/call-ids other": changed(func(r *converse.Reply) { each(r, func(i *canister.Invocation) { i.CallID = i.ID }) }),
	"Answer/finish": changed(func(r *converse.Reply) {
		if r.Message.Finish == canister.FinishRefusal {
			r.Message.Finish = canister.FinishStop
		}
	}),
	"Answer/usage known": changed(func(r *converse.Reply) { r.Message.Usage = nil }),
	"Answer/usage unknown": changed(func(r *converse.Reply) {
		if r.Message.Usage == nil {
			r.Message.Usage = &canister.Usage{}
		}
	}),
	"Request/history": asked(func(r *converse.Request) *converse.Request {
		other := *r
		other.History = slices.DeleteFunc(slices.Clone(r.History), func(c canister.Canister) bool { return c.Kind() == canister.KindDocument })
		return &other
	}),
	"Request/no-invocations none": asked(func(r *converse.Request) *converse.Request {
		other := *r
		other.NoInvocations = false
		return &other
	}),
	"Request/no-invocations tools": asked(func(r *converse.Request) *converse.Request {
		other := *r
		if r.NoInvocations {
			other.Tools = &converse.Toolset{}
		}
		return &other
	}),
	"Request/settings lost": asked(func(r *converse.Request) *converse.Request {
		other := *r
		other.MaxTokens = 0
		return &other
	}),
	"Request/settings changed": asked(func(r *converse.Request) *converse.Request {
		r.Stop = nil
		return r
	}),
	"Request/settings kept": func(b *broken) {
		var kept atomic.Int64
		asked(func(r *converse.Request) *converse.Request {
			if r.MaxTokens > 0 {
				kept.Store(r.MaxTokens)
			}
			other := *r
			other.MaxTokens = kept.Load()
			return &other
		})(b)
	},
	"Request/stable": func(b *broken) {
		var n atomic.Int32
		asked(func(r *converse.Request) *converse.Request {
			other := *r
			other.History = append(slices.Clone(r.History), canister.User{Head: canister.Head{ID: fmt.Sprint(n.Add(1))}})
			return &other
		})(b)
	},
	"Request/unchanged": asked(func(r *converse.Request) *converse.Request {
		r.History[0] = canister.Supervisor{Head: canister.Head{ID: "s1"}}
		return r
	}),
	"Request/concurrent": func(b *broken) {
		busy := make(chan struct{}, 1)
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				select {
				case busy <- struct{}{}:
					defer func() { <-busy }()
					time.Sleep(time.Millisecond)
					exchange(ctx, request)(yield)
				default:
					yield(nil, errors.New("busy"))
				}
			}
		}
	},
	"Error/refused plain":     refailed(func(err error) error { return errors.New(err.Error()) }),
	"Error/refused retryable": retryable(true),
	"Error/refused words":     refailed(func(error) error { return &converse.ModelError{Status: 400} }),
	"Error/busy":              retryable(false),
	"Error/busy status":       refailed(func(error) error { return &converse.ModelError{Retryable: true} }),
	"Error/broken": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				for event, err := range exchange(ctx, request) {
					if err != nil { // half an answer that looks finished
						event, err = converse.Reply{}, nil
					}
					if !yield(event, err) {
						return
					}
				}
			}
		}
	},
	"End/before": func(b *broken) { b.exchange = heedless },
	"End/during": func(b *broken) { b.exchange = heedless },
	"End/during error": refailed(func(error) error {
		return errors.New("the connection was closed")
	}),
	"End/left": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				left := false
				for event, err := range exchange(context.WithoutCancel(ctx), request) {
					left = left || !yield(event, err)
				}
			}
		}
	},
	"End/leaves-nothing": func(b *broken) {
		b.exchange = func(ctx context.Context, request *converse.Request, exchange func(context.Context, *converse.Request) events) events {
			return func(yield func(converse.ModelEvent, error) bool) {
				for event, err := range exchange(ctx, request) {
					if !yield(event, err) {
						go func() { select {} }()
						return
					}
				}
			}
		}
	},
	"Bind/same": func(b *broken) {
		b.bind = func() converse.Model {
			kept := &broken{server: b.server}
			var mu sync.Mutex
			var longest []canister.Canister
			asked(func(r *converse.Request) *converse.Request {
				mu.Lock()
				defer mu.Unlock()
				other := *r
				if len(longest) > len(r.History) { // an earlier request
					other.History = longest
				}
				longest = other.History
				return &other
			})(kept)
			return kept
		}
	},
	"Screen/same unsteady": func(b *broken) {
		var n atomic.Int32
		b.screen = func(d *invoker.Definition) error { return fmt.Errorf("reason %d", n.Add(1)) }
	},
	"Screen/same strict": func(b *broken) {
		b.screen = func(d *invoker.Definition) error { return errors.New("I do not like it") }
	},
	"Screen/same changes": func(b *broken) {
		var mu sync.Mutex
		b.screen = func(d *invoker.Definition) error {
			mu.Lock()
			defer mu.Unlock()
			d.InputSchema = nil
			return nil
		}
	},
	"Describe/same nameless": func(b *broken) {
		b.describe = func() telemetry.ModelInfo { return telemetry.ModelInfo{Provider: "test"} }
	},
	"Describe/same unsteady": func(b *broken) {
		n := 0
		b.describe = func() telemetry.ModelInfo { n++; return telemetry.ModelInfo{Provider: "test", Name: fmt.Sprint(n)} }
	},
	"Describe/same bound": func(b *broken) {
		b.bind = func() converse.Model {
			other := &broken{server: b.server}
			other.describe = func() telemetry.ModelInfo { return telemetry.ModelInfo{Provider: "test", Name: "other"} }
			return other
		}
	},
}

func each(r *converse.Reply, change func(*canister.Invocation)) {
	for i := range r.Invocations {
		change(&r.Invocations[i])
	}
}

// TestBroken runs the suite over a model that breaks one rule; only for
// TestSuiteFinds, which runs it in a process of its own.
func TestBroken(t *testing.T) {
	name := suite.BrokenRule(t, "CONVERSETEST_BREAK")
	conversetest.TestModel(t, func(_ *testing.T, lines []conversetest.Line) conversetest.Harness {
		b := &broken{server: &server{lines: lines}}
		breaks[name](b)
		return conversetest.Harness{Model: b, Received: b.lastReceived, Patience: time.Second}
	})
}

// TestSuiteFinds checks that each case of the suite can fail.
func TestSuiteFinds(t *testing.T) { suite.Finds(t, "TestBroken", "CONVERSETEST_BREAK", breaks) }
