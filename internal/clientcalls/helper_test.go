// SPDX-License-Identifier: Apache-2.0

package clientcalls_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// world is a server with the tool pay, which counts its effects, and a store.
type world struct {
	t        *testing.T
	ensemble *ensemble.Ensemble
	store    history.Store
	address  string
	demand   clientcalls.Demand
	free     bool // calls need no approval
	budgets  []clientcalls.Budget
	ledger   budget.Ledger
	others   time.Duration
	goesOn   chan struct{} // pay waits until it is closed, if it is not nil

	mu      sync.Mutex
	effects map[string]int // by client and arguments
}

type payment struct {
	To string `json:"to"`
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: history.NewMemory(), address: "here", effects: map[string]int{}}
	w.ensemble = ensemble.New("bank", ensemble.LocalSource(w.pay("Pay.")), nil)
	t.Cleanup(func() { _ = w.ensemble.Close(context.Background()) })
	return w
}

func (w *world) pay(description string) invoker.Invoker {
	pay, err := invoker.New("pay", description, func(ctx context.Context, p payment) (string, error) {
		if w.goesOn != nil {
			<-w.goesOn
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects[access.NameFrom(ctx)+" "+p.To]++
		return "paid", nil
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return pay
}

func (w *world) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, more := range w.effects {
		n += more
	}
	return n
}

// rules returns rules under which each call needs an approval.
func (w *world) rules(store history.Store) *clientcalls.Rules {
	return &clientcalls.Rules{
		Demand:  func(context.Context, ensemble.Item) (clientcalls.Demand, bool) { return w.demand, !w.free },
		Budgets: func(context.Context) []clientcalls.Budget { return w.budgets },
		Ledger:  func() budget.Ledger { return w.ledger },
		Store:   func(context.Context) (history.Store, error) { return store, nil },
		Address: func(e *ensemble.Ensemble) (string, bool) { return w.address, e == w.ensemble },
		Others:  w.others,
		Logger:  zap.NewNop(),
	}
}

// as returns a context of a client.
func as(ctx context.Context, client string) context.Context {
	return access.WithIdentity(access.WithName(ctx, client), cmp.Or(client, ""))
}

// call calls pay for a client.
func (w *world) call(ctx context.Context, gate *clientcalls.Gate, store history.Store, client, arguments string, person func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)) (*audit.Record, error) {
	tools, err := w.ensemble.Tools(ctx)
	if err != nil {
		return nil, err
	}
	record := &audit.Record{}
	_, err = gate.Invoke(as(ctx, client), w.rules(store), &mcpserver.ToolCall{
		Tool: tools[0], Item: ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "bank", Name: "pay"},
		Call: &invoker.Call{ID: "1", Arguments: json.RawMessage(arguments), Person: person}, Record: record,
	})
	return record, err
}

var idText = regexp.MustCompile(`ask-[a-z2-7]{20}`)

// fails expects a failure with a code, and returns the approval that it names.
func fails(t *testing.T, err error, code invoker.Code) string {
	t.Helper()
	failure := invoker.AsFailure(err)
	if failure == nil || failure.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return idText.FindString(failure.Message)
}

// open returns the open wait of an approval.
func open(t *testing.T, store history.Store, id string) canister.Wait {
	t.Helper()
	canisters, err := history.From(t.Context(), store, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := waits.Open(id, canisters, time.Now())
	if len(all) != 1 {
		t.Fatalf("%d open waits in %v", len(all), canisters)
	}
	return all[0]
}

// answer answers the open wait of an approval.
func answer(t *testing.T, store history.Store, id string, given canister.Answer) {
	t.Helper()
	given.Wait = open(t, store, id).ID
	given.By = cmp.Or(given.By, "dana")
	if err := waits.Answer(t.Context(), store, id, given, time.Now()); err != nil {
		t.Fatal(err)
	}
}

var errDead = errors.New("the process is dead")

// mortal is a store of a process that dies at an operation: afterwards, nothing works.
type mortal struct {
	history.Store
	mu   sync.Mutex
	left int  // operations until its death
	late bool // the last one still takes effect
}

// use reports whether an operation takes effect, and whether its process lives to see it.
func (m *mortal) use() (done, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	return m.left > 0 || m.left == 0 && m.late, m.left > 0
}

func (m *mortal) Append(ctx context.Context, id string, expected int, canisters ...canister.Canister) error {
	done, alive := m.use()
	err := errDead
	if done {
		err = m.Store.Append(ctx, id, expected, canisters...)
	}
	if !alive {
		return errDead
	}
	return err
}

func (m *mortal) Describe(ctx context.Context, id string, change history.Change) error {
	done, alive := m.use()
	err := errDead
	if done {
		err = m.Store.Describe(ctx, id, change)
	}
	if !alive {
		return errDead
	}
	return err
}
