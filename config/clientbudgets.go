// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/internal/storeledger"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/clientcalls"
)

// ClientBudget limits how many calls each of some clients may make in a window.
type ClientBudget struct {
	// Clients are globs for the names of the clients. Without any, each client has the
	// budget, and those without a name.
	Clients []string
	// Window is the calendar period in UTC: an hour, a day or a month. Required.
	Window budget.Window
	// Calls is the number of calls. Required.
	Calls int64
}

func (b *ClientBudget) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("clients", grammar.Each(&b.Clients, grammar.Text)),
		grammar.Key("window", grammar.Choice(&b.Window, budget.Hour, budget.Day, budget.Month)),
		grammar.Key("calls", grammar.Integer(&b.Calls, 1)),
	}
}

func (b *ClientBudget) check(r *grammar.Reader, n *document.Node) {
	emptyLists(r, n, "clients")
	if n.Member("window") == nil {
		r.Missing(n, "window", `missing: expected "hour", "day" or "month"`)
	}
	if n.Member("calls") == nil {
		r.Missing(n, "calls", "missing: expected the number of calls, such as calls = 1000")
	}
}

// budgetsOf returns the budgets of a client: of each window, the smallest.
func (s *Serve) budgetsOf(client string) (all []clientcalls.Budget) {
	for _, window := range []budget.Window{budget.Hour, budget.Day, budget.Month} {
		least := int64(0)
		for _, b := range s.Budgets {
			if b.Window == window && matches(b.Clients, client) && (least == 0 || b.Calls < least) {
				least = b.Calls
			}
		}
		if least > 0 {
			all = append(all, clientcalls.Budget{Window: window, Calls: least})
		}
	}
	return all
}

// clientLedger returns the ledger for the calls of clients.
func (a *Assembly) clientLedger() budget.Ledger {
	if a.shared.openHistory != nil {
		return storeledger.New(a.History)
	}
	return a.shared.calls
}
