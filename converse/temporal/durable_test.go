// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/invoker"
)

// The same durable turns as in internal/checks/bench.
const (
	durableConversations = 200
	durableTurns         = 5
)

// BenchmarkDurable measures turns on two workers over PostgreSQL, without faults. The CPU
// time is that of the workers; an iteration is a round of all conversations. .ci/bench runs
// it with CONSORT_TEMPORAL_MANY=postgresql.
func BenchmarkDurable(b *testing.B) {
	store := os.Getenv("CONSORT_TEMPORAL_MANY")
	if store == "" {
		b.Skip(".ci/bench runs it")
	}
	f := workerForm{Address: temporalserver.Start(b, store), Store: pgtest.DSN(b), Heartbeat: 5 * time.Second, Idle: 5 * time.Second, Plain: true}
	e := newPlainEngine(b, f)
	durableRound(b, e, startWorker(b, f), startWorker(b, f), "warm-up", 20)
	var rates, cpus []float64
	for n := 0; b.Loop(); n++ {
		took, cpu := durableRound(b, e, startWorker(b, f), startWorker(b, f), fmt.Sprint("round-", n), durableConversations)
		rates = append(rates, durableConversations*durableTurns/took.Seconds())
		cpus = append(cpus, float64(cpu.Microseconds())/(durableConversations*durableTurns))
	}
	slices.Sort(rates)
	slices.Sort(cpus)
	b.ReportMetric(rates[len(rates)/2], "temporal-turns/s")
	b.ReportMetric(rates[0], "temporal-turns/s-min")
	b.ReportMetric(rates[len(rates)-1], "temporal-turns/s-max")
	b.ReportMetric(cpus[len(cpus)/2], "temporal-cpu-us/turn")
}

// newPlainEngine returns an engine for the workers of a form.
func newPlainEngine(b *testing.B, f workerForm) *Engine {
	b.Helper()
	store, err := postgres.Open(b.Context(), f.Store, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	c, err := dial(f.Address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	e, err := NewEngine(c, store, &Options{Open: f.open(store, nil), Stream: NewStream(store)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// durableRound holds conversations on two workers and stops these. It returns the time of
// the turns, and the CPU time of the workers.
func durableRound(b *testing.B, e *Engine, one, two *process, name string, conversations int) (took, cpu time.Duration) {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range conversations {
		all.Go(func() {
			if err := talk(b.Context(), e, fmt.Sprintf("%s-%d", name, i)); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	took = time.Since(began)
	for _, p := range []*process{one, two} {
		p.stop(b)
		cpu += p.ProcessState.UserTime() + p.ProcessState.SystemTime()
	}
	return took, cpu
}

// talk sends the messages of a conversation, each when the one before is answered.
func talk(ctx context.Context, e *Engine, id string) error {
	for n := range durableTurns {
		message := canister.User{Head: canister.Head{ID: fmt.Sprintf("%s.%d", id, n)}, Content: canister.Texts("What is the weather in Oslo?")}
		if err := e.Send(ctx, id, message); err != nil {
			return fmt.Errorf("%s: %w", message.ID, err)
		}
		for event, err := range e.Watch(ctx, id, 0) {
			if err != nil {
				return fmt.Errorf("%s: %w", message.ID, err)
			}
			if ended, ok := event.(engine.Ended); ok && ended.Turn == message.ID && ended.Again.IsZero() {
				if ended.Reason != converse.ReasonAnswered {
					return fmt.Errorf("%s ended with %+v", message.ID, ended)
				}
				break
			}
		}
	}
	return nil
}

// plainRoster has one tool, which is a Go function.
func plainRoster() (*ensemble.Roster, error) {
	type input struct {
		What string `json:"what"`
	}
	look, err := invoker.New("look", "Look something up.", func(context.Context, input) (string, error) { return "Rain, 12 degrees.", nil }, nil)
	if err != nil {
		return nil, err
	}
	return ensemble.NewRoster(ensemble.Local("tools", look))
}
