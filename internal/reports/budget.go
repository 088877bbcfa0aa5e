// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"math"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// BudgetLeft describes what is left of the cap of which the smallest part is left.
func BudgetLeft(standings []budget.Standing, currency string) string {
	least, text := math.Inf(1), ""
	consider := func(limit, spent int64, render func(left int64) string) {
		left := max(0, limit-spent)
		if part := float64(left) / float64(max(1, limit)); limit > 0 && part < least {
			least, text = part, render(left)
		}
	}
	for _, s := range standings {
		window := ""
		if s.Cap.Window != budget.Lifetime {
			window = " this " + string(s.Cap.Window)
		}
		consider(s.Cap.Tokens, s.Spent.Tokens, func(left int64) string { return fmt.Sprintf("%d tokens%s", left, window) })
		consider(int64(s.Cap.Money), int64(s.Spent.Money), func(left int64) string {
			return fmt.Sprintf("%s %s%s", budget.Money(left), currency, window)
		})
		consider(int64(s.Cap.Time), int64(s.Spent.Time), func(left int64) string {
			return fmt.Sprintf("%s%s", time.Duration(left).Round(time.Second), window)
		})
	}
	return text
}
