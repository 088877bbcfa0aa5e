// SPDX-License-Identifier: Apache-2.0

package clientcalls

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Budget limits how many calls each client may make in a calendar period in UTC.
type Budget struct {
	Window budget.Window // not [budget.Lifetime]
	Calls  int64         // at least 1
}

// callExpires is how long a call may be under way before it counts as made for good.
const callExpires = 24 * time.Hour

// reserve counts a call against budgets, before it is made. Settle says whether it was.
func (r *Rules) reserve(ctx context.Context) (settle func(made bool), err error) {
	budgets := r.Budgets(ctx)
	if len(budgets) == 0 {
		return func(bool) {}, nil
	}
	now := time.Now()
	reservation := budget.Reservation{ID: "call-" + rand.Text(), Now: now, Expires: now.Add(callExpires)}
	client := digest(cmp.Or(access.IdentityFrom(ctx), "anyone"), access.NameFrom(ctx))
	for _, b := range budgets {
		period, ends := b.Window.Period(now)
		reservation.Lines = append(reservation.Lines, budget.Line{Account: "client/" + client + "/" + period + "/calls", Limit: b.Calls, Least: 1, Most: 1, Ends: ends})
	}
	ledger := r.Ledger()
	settle = func(made bool) {
		spent := make(map[string]int64, len(reservation.Lines))
		for _, line := range reservation.Lines {
			spent[line.Account] = 0
			if made {
				spent[line.Account] = 1
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := ledger.Settle(ctx, reservation.ID, spent); err != nil { // it then counts as made
			logevent.Log(ctx, r.Logger, zapcore.WarnLevel, "a call of a client could not be counted", logevent.ServeBudgetFailed, zap.Error(err))
		}
	}
	_, err = ledger.Reserve(ctx, reservation)
	if denied := (*budget.DeniedError)(nil); errors.As(err, &denied) {
		b := budgets[denied.Line]
		_, free := b.Window.Period(now)
		return nil, invoker.UnavailableFor(free.Sub(now), "This client may make %d calls per %s, and has made them. The next ones are possible from %s on.", b.Calls, b.Window, free.Format(time.RFC3339))
	}
	if err != nil {
		if ctx.Err() != nil { // the ledger may have counted the call nevertheless
			settle(false)
		}
		return nil, &invoker.Failure{Code: invoker.Unavailable, Message: "The calls of this client cannot be counted now. The call was not started.", Cause: err, Retryable: true}
	}
	return settle, nil
}
