// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/testing/ledgerrace"
)

// BenchmarkLedger reserves on three accounts and settles.
func BenchmarkLedger(b *testing.B) { ledgerrace.Bench(b, budget.NewMemory()) }
