// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"sync"
	"time"
)

// Memory is a [Ledger] in memory that is lost when the process ends.
type Memory struct {
	mu   sync.Mutex
	book Book
}

var _ Ledger = (*Memory)(nil)

// NewMemory returns a ledger without accounts.
func NewMemory() *Memory { return &Memory{} }

// Reserve implements [Ledger].
func (m *Memory) Reserve(ctx context.Context, r Reservation) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.Tidy(r.Due(time.Now()))
	return m.book.Reserve(r)
}

// Settle implements [Ledger].
func (m *Memory) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := CheckSpent(spent); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.Settle(id, spent)
	return nil
}

// Balances implements [Ledger].
func (m *Memory) Balances(ctx context.Context, accounts ...string) ([]Balance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	balances := make([]Balance, len(accounts))
	for i, account := range accounts {
		balances[i] = m.book.Balance(account)
	}
	return balances, nil
}
