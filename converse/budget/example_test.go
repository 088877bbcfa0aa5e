// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
)

// A conversation that may spend 3000 tokens: the second turn finds too few.
func Example() {
	model := conversetest.NewScript(
		conversetest.Line{Text: "Rain, so a coat.", Usage: &canister.Usage{Input: 1200, Output: 800}},
	)
	talk := converse.New(model, nil, &converse.Options{ID: "weather", Budget: &budget.Policy{
		Ledger: budget.NewMemory(),
		Caps:   []budget.Cap{{Scope: budget.Conversation, Tokens: 3000}},
	}})
	for _, question := range []string{"What should I wear in Oslo?", "And in Bergen?"} {
		turn, err := talk.Ask(context.Background(), canister.Text(question))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s, %d tokens\n", turn.Reason, turn.Text(), turn.Spent.Tokens)
		if turn.Reason == converse.ReasonBudget {
			fmt.Println(turn.Reached.Cap.Scope, turn.Reached.Spent)
		}
	}
	// Output:
	// answered: Rain, so a coat., 2000 tokens
	// budget: , 0 tokens
	// conversation 2000
}

// Money has a price for each model, in the same currency as the caps.
func ExamplePolicy() {
	input, err := budget.ParseMoney("2.50")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := &budget.Policy{
		Ledger:   budget.NewMemory(),
		Currency: "USD",
		Prices:   map[string]budget.Price{"large": {Input: input, Output: 10 * budget.Unit}},
		Caps:     []budget.Cap{{Scope: budget.Identity, Window: budget.Day, Money: budget.Unit / 20}},
	}
	fmt.Println(policy.Check("large"))
	fmt.Println(policy.Check("unheard-of"))
	// Output:
	// <nil>
	// budget: a cap of money needs a price for the model "unheard-of"
}

// A program that calls a model without a conversation reserves and settles itself.
func ExamplePolicy_Reserve() {
	ctx, now := context.Background(), time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	policy := &budget.Policy{Ledger: budget.NewMemory(), Caps: []budget.Cap{{Scope: budget.Identity, Window: budget.Day, Tokens: 1500}}}
	need := budget.Need{ID: "first", Who: budget.Who{Identity: "ada"}, Exchange: true, Input: 900, Now: now}
	hold, err := policy.Reserve(ctx, need)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the answer may have", hold.Answer, "tokens")

	need.ID = "second"
	_, err = policy.Reserve(ctx, need)
	var reached *budget.ReachedError
	fmt.Println(errors.As(err, &reached), err)

	amount, err := hold.Settle(ctx, budget.Spent{Usage: &canister.Usage{Input: 400, Output: 100}})
	fmt.Println(amount.Tokens, err)
	// Output:
	// the answer may have 600 tokens
	// true the budget of 1500 tokens per day for each identity does not suffice for the next step: 0 tokens are spent, 1500 tokens are reserved for work in progress, and up to 916 tokens are needed
	// 500 <nil>
}

func ExampleParseMoney() {
	money, err := budget.ParseMoney("0.0375")
	fmt.Println(money, int64(money), err)
	_, err = budget.ParseMoney("1e3")
	fmt.Println(err)
	// Output:
	// 0.0375 37500 <nil>
	// budget: "1e3" is not an amount of money; write digits with a point, such as 2.50
}

func ExamplePrice_Cost() {
	price := budget.Price{Input: 2 * budget.Unit, Cached: budget.Unit, Output: 8 * budget.Unit}
	fmt.Println(price.Cost(canister.Usage{Input: 1000, Cached: 600, Output: 250}))
	// Output:
	// 0.0034
}
