// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/converse/internal/tokens"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// account reserves and settles what a piece of work spends of the budget.
type account struct {
	opts    *Options
	guard   *guard
	work    context.Context // its trusted values name the account, whatever context a tool uses
	reached *budget.ReachedError
	timed   atomic.Bool // the time of calls is being counted, including their sampling

	mu    sync.Mutex
	spent budget.Amount
}

// add adds a spent amount.
func (a *account) add(spent budget.Amount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = a.spent.Add(spent)
}

// total returns the spent amount.
func (a *account) total() budget.Amount {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// outOfBudget records and reports whether an exchange failed because of the budget.
func (a *account) outOfBudget(err error) bool { return errors.As(err, &a.reached) }

// reserve reserves an amount before it is spent. Need.ID identifies the expense within
// the conversation.
func (a *account) reserve(ctx context.Context, need budget.Need) (*budget.Hold, error) {
	who, err := owner.Of(a.work, a.opts.Identity)
	if err != nil {
		return nil, err
	}
	whole, err := json.Marshal([]string{a.opts.ID, need.ID}) // distinct lists have distinct forms
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(whole)
	need.ID = hex.EncodeToString(sum[:])
	need.Who = budget.Who{Conversation: a.opts.ID, Identity: hex.EncodeToString(who[:])}
	need.Now = a.opts.Now()
	return callForeign(ctx, a.guard, "the ledger of Options.Budget", func() (*budget.Hold, error) { return a.opts.Budget.Reserve(ctx, need) })
}

// settleTimeout is the timeout for settling with the ledger, which runs even if the work was
// cancelled.
const settleTimeout = 10 * time.Second

// settleHold settles the spent amount with the ledger. If the ledger does not accept
// it, the reserved amount stays reserved and counts as spent.
func (a *account) settleHold(ctx context.Context, hold *budget.Hold, spent budget.Spent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	amount, err := callForeign(ctx, a.guard, "the ledger of Options.Budget", func() (budget.Amount, error) { return hold.Settle(ctx, spent) })
	a.add(amount)
	if err != nil {
		logevent.Log(ctx, a.guard.log, zapcore.ErrorLevel, "the spent amount could not be settled; the reserved amount counts as spent", logevent.BudgetFailed, zap.Error(err))
	}
}

// limitHold returns a context that ends after the reserved time.
func limitHold(ctx context.Context, hold *budget.Hold) (context.Context, context.CancelFunc) {
	if hold.Time == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, hold.Time, hold.TimeIsUp())
}

// pay runs an exchange within the budget: it reserves the maximum cost before, and
// settles the real cost afterwards. Chained means that other models may have answered before.
func (a *asker) pay(ctx context.Context, of *exchangeSpan, model Model, info telemetry.ModelInfo, chained bool) iter.Seq2[ModelEvent, error] {
	request := of.request
	if a.opts.Budget == nil {
		return a.exchangeWith(ctx, model, request)
	}
	return func(yield func(ModelEvent, error) bool) {
		counts := ""
		if chained {
			counts = info.Name
		}
		hold, err := a.account.reserve(ctx, budget.Need{
			ID: cmp.Or(of.work, "answer to "+tokens.LastID(request.History)), Model: info.Name, Exchange: true,
			Input: a.mostTokens(model, request, of.work == "", counts), Answer: least(info.MaxTokens, request.MaxTokens),
			Time: a.opts.Budget.LimitsTime() && !a.account.timed.Load(),
		})
		if err != nil {
			yield(nil, err)
			return
		}
		limited, cancel := limitHold(ctx, hold)
		defer cancel()
		began, spent := a.opts.Now(), budget.Spent{}
		defer func() {
			spent.Time = a.opts.since(began)
			a.account.settleHold(ctx, hold, spent)
		}()
		bounded := *request
		bounded.MaxTokens = least(request.MaxTokens, hold.Answer)
		watch(limited, a.exchangeWith(limited, model, &bounded), &spent, yield)
	}
}

// watch passes on the events of a model and records the cost. If ctx ended because of
// the budget, the error says so.
func watch(ctx context.Context, events iter.Seq2[ModelEvent, error], spent *budget.Spent, yield func(ModelEvent, error) bool) {
	worked := false
	for event, err := range events {
		switch event := event.(type) {
		case Reply:
			spent.Usage = event.Message.Usage
		case Delta:
			worked = true
		case Retry:
			worked = worked || !refused(event.Err)
		}
		if _, last := event.(Reply); !last || err != nil {
			spent.Usage, spent.Nothing = failedUsage(err, worked)
			if reached := new(budget.ReachedError); errors.As(context.Cause(ctx), &reached) {
				yield(nil, reached)
				return
			}
		}
		if !yield(event, err) {
			return
		}
	}
}

// failedUsage returns the cost of a failed exchange: the tokens that its error reports, or
// nothing if the server refused the request. Otherwise the cost is unknown, also if the
// model has worked on the request before: it has streamed, or an answer broke off.
func failedUsage(err error, worked bool) (usage *canister.Usage, nothing bool) {
	if err == nil || !refused(err) {
		return nil, false
	}
	if failed := new(ModelError); errors.As(err, &failed) && failed.Usage != nil {
		return failed.Usage, false
	}
	return nil, !worked
}

// refused reports whether an exchange failed before the model worked on it: the server
// answered with an error, with a status or a code of its own, or could not be reached.
func refused(err error) bool {
	if failed := new(ModelError); errors.As(err, &failed) && (failed.Status >= 400 || failed.Code != "" && failed.Ran == "" && !errors.Is(err, io.ErrUnexpectedEOF)) {
		return true
	}
	dial := new(net.OpError)
	return errors.As(err, &dial) && dial.Op == "dial"
}

// least returns the lower of two bounds; 0 means no bound.
func least(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// mostTokens returns an upper bound of the tokens of a request. For earlier messages of
// the conversation it uses the count of the server. Models count differently: unless
// counter is empty, it is the only model whose count is used.
func (a *asker) mostTokens(model Model, request *Request, own bool, counter string) int64 {
	tools := slices.Clone(request.Tools.Definitions)
	if finder, ok := model.(interface {
		Shown(set *Toolset) (shown map[string]bool, finds bool)
	}); ok && own { // such as a findtools.Model
		shown, finds := finder.Shown(request.Tools)
		for i, d := range tools {
			if finds && !shown[d.Name] {
				tools[i] = nil // the request does not describe it
			}
		}
	}
	return tokens.Most(tools, request.History, a.conv.history, func(said canister.Assistant) (first int, ok bool) {
		if said.ID == a.countedBy {
			first = min(a.counted, len(tools)) // new tools are at the end
		}
		return first, own && strings.HasPrefix(said.Model, counter)
	})
}

// budgetTime reserves the time of calls. The context ends with that time, and the
// caller must call settle when the calls are over. If no time is left, reached is the
// reason.
func (a *account) budgetTime(ctx context.Context, calls []canister.Invocation) (_ context.Context, settle func(), _ error) {
	if a.opts.Budget == nil || !a.opts.Budget.LimitsTime() {
		return ctx, func() {}, nil
	}
	hold, err := a.reserve(ctx, budget.Need{ID: "call " + calls[0].ID, Time: true})
	if a.outOfBudget(err) {
		return ctx, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	began := a.opts.Now()
	limited, cancel := limitHold(ctx, hold)
	a.timed.Store(true)
	return limited, func() {
		a.timed.Store(false)
		a.settleHold(ctx, hold, budget.Spent{Time: a.opts.since(began)})
		cancel()
	}, nil
}

// checkBudget returns an error if the budget is invalid.
func (c *Conversation) checkBudget() error {
	if c.opts.Budget == nil {
		return nil
	}
	for _, name := range names(c.origin, c.info) {
		if err := c.opts.Budget.Check(name); err != nil {
			return fmt.Errorf("converse: Options.Budget: %w", err)
		}
	}
	if compaction := c.opts.Compaction; compaction != nil && compaction.Model != nil {
		info, err := describe(compaction.Model)
		if err != nil {
			return err
		}
		for _, name := range names(compaction.Model, info) {
			if err := c.opts.Budget.Check(name); err != nil {
				return fmt.Errorf("converse: Options.Budget, for the model of Compaction: %w", err)
			}
		}
	}
	return nil
}
