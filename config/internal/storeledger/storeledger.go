// SPDX-License-Identifier: Apache-2.0

// Package storeledger makes a ledger of a conversation store that is not open yet.
package storeledger

import (
	"context"
	"errors"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
)

// New returns the ledger of a conversation store. The function open returns the store; it
// is called at each use of the ledger.
func New(open func(context.Context) (history.Store, error)) budget.Ledger { return lazy{open} }

type lazy struct {
	open func(context.Context) (history.Store, error)
}

func (l lazy) ledger(ctx context.Context) (budget.Ledger, error) {
	store, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	keeper, ok := store.(interface{ Ledger() budget.Ledger })
	if !ok {
		return nil, errors.New("budgets: the conversation store does not support accounts")
	}
	return keeper.Ledger(), nil
}

func (l lazy) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Reserve(ctx, r)
}

func (l lazy) Settle(ctx context.Context, id string, spent map[string]int64) error {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return err
	}
	return ledger.Settle(ctx, id, spent)
}

func (l lazy) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Balances(ctx, accounts...)
}
