// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// bill is the amount that a piece of work has spent, and whether the budget ended it.
type bill struct {
	reached *budget.ReachedError
	timed   atomic.Bool // the time of calls is being counted, including their sampling

	mu    sync.Mutex
	spent budget.Amount
}

// add adds a spent amount.
func (b *bill) add(spent budget.Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = b.spent.Add(spent)
}

// total returns the spent amount.
func (b *bill) total() budget.Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// outOfBudget records and reports whether an exchange failed because of the budget.
func (t *turn) outOfBudget(err error) bool { return errors.As(err, &t.bill.reached) }

// reserve reserves an amount before it is spent. Need.ID identifies the expense within
// the conversation.
func (t *turn) reserve(ctx context.Context, need budget.Need) (*budget.Hold, error) {
	who, err := owner.Of(ctx, t.opts.Identity)
	if err != nil {
		return nil, err
	}
	whole, err := json.Marshal([]string{t.opts.ID, need.ID}) // distinct lists have distinct forms
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(whole)
	need.ID = hex.EncodeToString(sum[:])
	need.Who = budget.Who{Conversation: t.opts.ID, Identity: hex.EncodeToString(who[:])}
	need.Now = t.opts.Now()
	return foreign(t, ctx, "the ledger of Options.Budget", func() (*budget.Hold, error) { return t.opts.Budget.Reserve(ctx, need) })
}

// settling is the timeout for settling with the ledger, which runs even if the work was
// cancelled.
const settling = 10 * time.Second

// settleHold settles the spent amount with the ledger. If the ledger does not accept
// it, the reserved amount stays reserved and counts as spent.
func (t *turn) settleHold(ctx context.Context, hold *budget.Hold, spent budget.Spent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	amount, err := foreign(t, ctx, "the ledger of Options.Budget", func() (budget.Amount, error) { return hold.Settle(ctx, spent) })
	t.bill.add(amount)
	if err != nil {
		event.Log(ctx, t.log, zapcore.ErrorLevel, "what was spent could not be settled, and counts as it was reserved", event.BudgetFailed, zap.Error(err))
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
// settles the real cost afterwards. Own means that the exchange belongs to the
// conversation, with its history and its tools.
func (t *turn) pay(ctx context.Context, model Model, info telemetry.ModelInfo, request *Request, own bool) iter.Seq2[ModelEvent, error] {
	if t.opts.Budget == nil {
		return t.exchangeWith(ctx, model, request)
	}
	return func(yield func(ModelEvent, error) bool) {
		hold, err := t.reserve(ctx, budget.Need{
			ID: "answer to " + lastID(request.History), Model: info.Name, Exchange: true,
			Input: t.mostTokens(request, own), Answer: least(info.MaxTokens, request.MaxTokens),
			Time: t.opts.Budget.LimitsTime() && !t.bill.timed.Load(),
		})
		if err != nil {
			yield(nil, err)
			return
		}
		limited, cancel := limitHold(ctx, hold)
		defer cancel()
		began, spent := t.opts.Now(), budget.Spent{}
		defer func() {
			spent.Time = t.since(began)
			t.settleHold(ctx, hold, spent)
		}()
		bounded := *request
		bounded.MaxTokens = least(request.MaxTokens, hold.Answer)
		watch(limited, t.exchangeWith(limited, model, &bounded), &spent, yield)
	}
}

// watch passes on the events of a model and records the cost. If ctx ended because of
// the budget, the error says so.
func watch(ctx context.Context, events iter.Seq2[ModelEvent, error], spent *budget.Spent, yield func(ModelEvent, error) bool) {
	streamed := false
	for event, err := range events {
		switch event := event.(type) {
		case Reply:
			spent.Usage = event.Message.Usage
		case Delta:
			streamed = true
		}
		if _, last := event.(Reply); !last || err != nil {
			spent.Nothing = err != nil && !streamed && refused(err)
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

// refused reports whether an exchange failed before the model worked on it: the server
// answered with an error, or could not be reached.
func refused(err error) bool {
	if failed := new(ModelError); errors.As(err, &failed) && failed.Status >= 400 {
		return true
	}
	dial := new(net.OpError)
	return errors.As(err, &dial) && dial.Op == "dial"
}

// lastID returns the identity of the last canister. It identifies the answer to a
// history, whichever process asks for it.
func lastID(history []canister.Canister) string {
	if len(history) == 0 {
		return ""
	}
	return history[len(history)-1].Header().ID
}

// least returns the lower of two bounds; 0 means no bound.
func least(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Upper bounds of the tokens of a request, in addition to the bytes of its texts.
const (
	mostPerMessage = 64   // the overhead of a message or a content, and its name
	mostPerMedia   = 8192 // an image or audio
	mostPerRequest = 512
)

// mostTokens returns an upper bound of the tokens of a request: a token has at least
// one byte. For earlier messages of the conversation it uses the count of the server;
// other tools may have been on offer then than now.
func (t *turn) mostTokens(request *Request, own bool) int64 {
	tokens := int64(mostPerRequest)
	counted := 0 // the tools already counted; new ones are at the end
	if own && t.asked {
		counted = min(t.counted, len(request.Tools.Definitions))
	}
	for _, definition := range request.Tools.Definitions[counted:] {
		tokens += mostPerMessage + int64(len(definition.Name)+len(definition.Title)+len(definition.Description)+len(definition.InputSchema))
	}
	for i := len(request.History) - 1; i >= 0; i-- {
		said, ok := request.History[i].(canister.Assistant)
		if own && ok && said.Usage != nil && said.Usage.Input > 0 && said.Usage.Output >= 0 {
			return budget.Sum(tokens, budget.Sum(said.Usage.Input, said.Usage.Output))
		}
		tokens += mostOf(request.History[i])
	}
	return tokens
}

// mostOf returns an upper bound of the tokens of a canister.
func mostOf(c canister.Canister) int64 {
	tokens := int64(mostPerMessage)
	switch c := c.(type) {
	case canister.Invocation:
		return tokens + int64(len(c.Name)+len(c.CallID)+len(c.Arguments))
	case canister.Document:
		tokens += int64(len(c.Title))
	}
	for _, content := range canister.ContentOf(c) {
		if isMedia(content) {
			tokens += mostPerMedia
		} else {
			tokens += mostPerMessage + int64(size(content))
		}
	}
	return tokens
}

// budgetTime reserves the time of calls. The context ends with that time, and the
// caller must call settle when the calls are over. If no time is left, the bill records
// the reason.
func (t *turn) budgetTime(ctx context.Context, calls []canister.Invocation) (_ context.Context, settle func(), _ error) {
	if t.opts.Budget == nil || !t.opts.Budget.LimitsTime() {
		return ctx, func() {}, nil
	}
	hold, err := t.reserve(ctx, budget.Need{ID: "call " + calls[0].ID, Time: true})
	if t.outOfBudget(err) {
		return ctx, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	began := t.opts.Now()
	limited, cancel := limitHold(ctx, hold)
	t.bill.timed.Store(true)
	return limited, func() {
		t.bill.timed.Store(false)
		t.settleHold(ctx, hold, budget.Spent{Time: t.since(began)})
		cancel()
	}, nil
}

// checkBudget returns an error if the budget is invalid.
func (c *Conversation) checkBudget() error {
	if c.opts.Budget == nil {
		return nil
	}
	if err := c.opts.Budget.Check(c.info.Name); err != nil {
		return fmt.Errorf("converse: Options.Budget: %w", err)
	}
	if compaction := c.opts.Compaction; compaction != nil && compaction.Model != nil {
		info, err := describe(compaction.Model)
		if err != nil {
			return err
		}
		if err := c.opts.Budget.Check(info.Name); err != nil {
			return fmt.Errorf("converse: Options.Budget, for the model of Compaction: %w", err)
		}
	}
	return nil
}
