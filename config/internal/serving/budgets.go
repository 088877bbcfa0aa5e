// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"github.com/consort-go/consort/config/internal/conditions"
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/clientcalls"
)

func clientBudgetFields(b *serve.Budget) []grammar.Field {
	return []grammar.Field{
		grammar.Key("clients", grammar.Each(&b.Clients, grammar.Text)),
		grammar.Key("window", grammar.Choice(&b.Window, budget.Hour, budget.Day, budget.Month)),
		grammar.Key("calls", grammar.Integer(&b.Calls, 1)),
	}
}

func checkClientBudget(b *serve.Budget, r *grammar.Reader, n *document.Node) {
	r.EmptyLists(n, "clients")
	if n.Member("window") == nil {
		r.Missing(n, "window", `missing: expected "hour", "day" or "month"`)
	}
	if n.Member("calls") == nil {
		r.Missing(n, "calls", "missing: expected the number of calls, such as calls = 1000")
	}
}

// budgetsOf returns the budgets of a client: of each window, the smallest.
func (s offer) budgetsOf(client string) (all []clientcalls.Budget) {
	for _, window := range []budget.Window{budget.Hour, budget.Day, budget.Month} {
		least := int64(0)
		for _, b := range s.Budgets {
			if b.Window == window && conditions.Matches(b.Clients, client) && (least == 0 || b.Calls < least) {
				least = b.Calls
			}
		}
		if least > 0 {
			all = append(all, clientcalls.Budget{Window: window, Calls: least})
		}
	}
	return all
}
