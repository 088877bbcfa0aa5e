// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// watched notes which accounts are used.
type watched struct {
	budget.Ledger
	accounts []string
}

func (w *watched) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	for _, line := range r.Lines {
		w.accounts = append(w.accounts, line.Account)
	}
	return w.Ledger.Reserve(ctx, r)
}

// A book does not grow with past days or with reservations that were never settled, and
// is the same after it was written and read.
func TestBookDoesNotGrow(t *testing.T) {
	var book budget.Book
	now := noon
	for day := range 200 {
		r := budget.Reservation{
			ID: fmt.Sprint("r", day), Now: now, Expires: now.Add(24 * time.Hour),
			Lines: []budget.Line{
				{Account: fmt.Sprint("day", day), Limit: 10, Least: 1, Most: 5, Ends: now.Add(12 * time.Hour)},
				{Account: "all", Limit: budget.MaxAmount, Most: 1},
			},
		}
		book.Tidy(now)
		if _, err := book.Reserve(r); err != nil {
			t.Fatal(err)
		}
		if day%2 == 0 {
			book.Settle(r.ID, map[string]int64{"all": 3})
		}
		text, err := json.Marshal(&book)
		if err != nil {
			t.Fatal(err)
		}
		var read budget.Book
		if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read.Accounts, book.Accounts) ||
			fmt.Sprint(read.Open) != fmt.Sprint(book.Open) {
			t.Fatalf("%s is read as %+v (%v)", text, read, err)
		}
		book = read
		now = now.Add(24 * time.Hour)
	}
	if len(book.Accounts) > 40 || len(book.Open) > 2 {
		t.Errorf("there are %d accounts and %d reservations", len(book.Accounts), len(book.Open))
	}
	if held := book.Balance("all"); held.Held() != 100*3+100*1 {
		t.Errorf("the account of all holds %+v", held)
	}
}
