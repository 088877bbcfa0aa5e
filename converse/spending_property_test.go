// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// metered is a model that writes as much as it may, or less, and counts what it
// takes for that, whether or not anybody hears of it.
type metered struct {
	tokens, money atomic.Int64
	longest       atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

var meteredPrice = budget.Price{Input: 2_500_000, Output: 10_000_000}

func (m *metered) Describe() telemetry.ModelInfo { return telemetry.ModelInfo{Name: "metered"} }

func (m *metered) roll(n int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.Int64N(n)
}

func (m *metered) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		if request.MaxTokens <= 0 {
			yield(nil, errors.New("the answer has no bound"))
			return
		}
		used := canister.Usage{Input: 1, Output: 1 + m.roll(request.MaxTokens)}
		if m.roll(3) == 0 {
			used.Output = request.MaxTokens
		}
		for _, c := range request.History {
			used.Input += int64(len(history.TextOf(c)))
		}
		m.tokens.Add(used.Total())
		m.money.Add(int64(meteredPrice.Cost(used)))
		for most := m.longest.Load(); used.Output > most && !m.longest.CompareAndSwap(most, used.Output); most = m.longest.Load() {
		}
		if m.roll(10) == 0 {
			yield(nil, &converse.ModelError{Message: "broke off", Retryable: true})
			return
		}
		reply := converse.Reply{Message: canister.Assistant{
			Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("hm"), Finish: canister.FinishStop, Usage: &used,
		}}
		if m.roll(6) == 0 {
			reply.Message.Usage = nil
		}
		if m.roll(2) == 0 && len(request.Tools.Definitions) > 0 {
			reply.Message.Finish = canister.FinishInvocations
			reply.Invocations = []canister.Invocation{{
				Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "call", Name: "local__ask", Arguments: "{}",
			}}
		}
		yield(reply, nil)
	}
}

// mortal is the ledger of a process that may die at any step: what it does then
// reaches nobody.
type mortal struct {
	budget.Ledger
	left atomic.Int64 // steps
}

var errDead = errors.New("the process is gone")

func (m *mortal) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	if m.left.Add(-1) < 0 {
		return nil, errDead
	}
	return m.Ledger.Reserve(ctx, r)
}

func (m *mortal) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if m.left.Add(-1) < 0 {
		return errDead
	}
	return m.Ledger.Settle(ctx, id, spent)
}

// Whatever conversations do side by side, they take no more than the caps allow.
// Where processes die between an answer and its settlement, there may be what was
// reserved for such an answer beside, once for each death.
func TestBudgetHolds(t *testing.T) {
	rounds := uint64(60)
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		for _, deaths := range []bool{false, true} {
			holds(t, seed, deaths)
		}
	}
}

func holds(t *testing.T, seed uint64, deaths bool) {
	random := rand.New(rand.NewPCG(seed, 6))
	limit := 3000 + random.Int64N(60_000)
	price := budget.Money(3000 + random.Int64N(300_000))
	model := &metered{random: rand.New(rand.NewPCG(seed, 7))}
	p := &budget.Policy{
		Ledger: budget.NewMemory(), Currency: "EUR", Answer: 1 + random.Int64N(3000),
		Prices: map[string]budget.Price{"metered": meteredPrice},
		Caps: []budget.Cap{
			{Scope: budget.Identity, Window: budget.Day, Tokens: limit},
			{Scope: budget.Roster, Money: price},
			{Scope: budget.Conversation, Tokens: limit / 2, Time: time.Hour},
		},
	}
	roster := newRoster(t, asker("ask", 2))
	store := history.NewMemory()
	var dead atomic.Int64
	var wait sync.WaitGroup
	for n := range 6 {
		id := fmt.Sprint("talk", n)
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		wait.Go(func() {
			for range 5 {
				own := *p
				ledger := &mortal{Ledger: p.Ledger}
				ledger.left.Store(1 << 40)
				if deaths {
					ledger.left.Store(random.Int64N(8))
				}
				own.Ledger = ledger
				talk := converse.New(model, roster, &converse.Options{
					ID: id, Log: store, Budget: &own, Trusted: []invoker.Value{invoker.TrustedJSON("user", []byte("1"))},
				})
				_, err := talk.Run(t.Context())
				if err == nil {
					_, err = talk.Ask(t.Context(), canister.Text("go on"))
				}
				if failed := new(converse.ModelError); err != nil && !errors.Is(err, errDead) && !errors.As(err, &failed) {
					t.Error(err)
				}
				if ledger.left.Load() < 0 {
					dead.Add(1)
				}
			}
		})
	}
	wait.Wait()
	// A death leaves the exchange under way, or two of a tool side by side, and
	// those that the process believes to go on with while it is dead to the ledger.
	answers := dead.Load() * 3 * (p.Answer + 4096)
	if is := model.tokens.Load(); is > limit+answers {
		t.Errorf("seed %d, deaths %v: %d tokens were taken under a cap of %d, with %d deaths", seed, deaths, is, limit, dead.Load())
	}
	if is := model.money.Load(); is > int64(price)+dead.Load()*3*int64(meteredPrice.Cost(canister.Usage{Input: 4096, Output: p.Answer})) {
		t.Errorf("seed %d, deaths %v: %d was paid under a cap of %d, with %d deaths", seed, deaths, is, price, dead.Load())
	}
	standings, err := p.Standings(t.Context(), budget.Who{}, time.Now())
	if err != nil || int64(standings[1].Spent.Money)+int64(standings[1].Reserved.Money) > int64(price) {
		t.Errorf("seed %d, deaths %v: %+v, %v", seed, deaths, standings[1], err)
	}
	if !deaths && (standings[1].Reserved != (budget.Amount{}) || int64(standings[1].Spent.Money) < model.money.Load()) {
		t.Errorf("seed %d: the account says %+v, and %d was paid", seed, standings[1], model.money.Load())
	}
}
