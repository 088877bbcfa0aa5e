// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/internal/conditions"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// Reasons given to a model when a tool must not run.
const (
	reasonDenied = "The configuration of this program does not allow this call."
	reasonNobody = "This call needs approval, but no person can be asked here."
)

// ErrLater is returned by an approval function to postpone its decision. It works with
// [ActionAsk] and [ActionDefer], where conversations are stored.
var ErrLater = errors.New("config: the decision is postponed")

// UnansweredError is returned by an approval function that has no person to ask. With
// [ActionAsk] the call is denied, and the model gets the reason. With [ActionDefer] the
// decision is postponed.
type UnansweredError struct {
	Reason string
}

func (e *UnansweredError) Error() string { return e.Reason }

// Func returns the rules as an approval function for a conversation. Where a rule says
// [ActionAsk], ask decides; if ask is nil, the call is denied. lasts reports whether the
// conversation is stored, so that a decision can be postponed. A rule that names a person
// asks no other one: the call waits for that person, or is denied if it cannot wait. The function is nil if
// every call is allowed. The error reports a rule whose action is unknown or missing.
func (a *Approval) Func(ask converse.ApproveFunc, lasts bool) (converse.ApproveFunc, error) {
	return a.approveFunc(ask, lasts, false)
}

// approveFunc is like Func. With askWrites, an empty Default asks, unless the call is
// read-only.
func (a *Approval) approveFunc(ask converse.ApproveFunc, lasts, askWrites bool) (converse.ApproveFunc, error) {
	askWrites = askWrites && a.Default == ""
	otherwise := Rule{Action: a.Default}
	if askWrites {
		otherwise.Action = ActionAsk
	}
	fallback, err := decider(otherwise, ask, lasts)
	if err != nil {
		return nil, grammar.About("approval.default", err)
	}
	if askWrites {
		fallback = allowReads(fallback)
	}
	rules := make([]compiledRule, len(a.Rules))
	for i, rule := range a.Rules {
		if rule.Action == "" {
			return nil, grammar.About(fmt.Sprintf("approval.rules[%d]", i), errors.New("the rule has no action"))
		}
		if rules[i].decide, err = decider(rule, ask, lasts); err != nil {
			return nil, grammar.About(fmt.Sprintf("approval.rules[%d]", i), err)
		}
		rules[i].Rule = rule
	}
	if len(rules) == 0 && !askWrites && (a.Default == "" || a.Default == ActionAllow) {
		return nil, nil
	}
	return func(ctx context.Context, approval converse.Approval) (converse.Decision, error) {
		for i := range rules {
			if rules[i].fits(&approval) {
				return rules[i].decide(ctx, approval)
			}
		}
		return fallback(ctx, approval)
	}, nil
}

// Forbid returns a function for [converse.Options].Forbid. It forbids the calls whose
// first matching rule says [ActionDeny], even if they were approved under other rules. It
// is nil if no rule denies.
func (a *Approval) Forbid() func(context.Context, converse.Approval) (reason string, forbidden bool) {
	denies := func(r Rule) bool { return r.Action == ActionDeny }
	if a.Default != ActionDeny && !slices.ContainsFunc(a.Rules, denies) {
		return nil
	}
	return func(_ context.Context, approval converse.Approval) (string, bool) {
		rule := Rule{Action: a.Default}
		if i := slices.IndexFunc(a.Rules, func(r Rule) bool { return (&compiledRule{Rule: r}).fits(&approval) }); i >= 0 {
			rule = a.Rules[i]
		}
		return cmp.Or(rule.Reason, reasonDenied), denies(rule)
	}
}

// allowReads wraps ask and allows read-only calls without asking.
func allowReads(ask converse.ApproveFunc) converse.ApproveFunc {
	return func(ctx context.Context, approval converse.Approval) (converse.Decision, error) {
		if approval.ReadOnly {
			return converse.Allow(), nil
		}
		return ask(ctx, approval)
	}
}

// decider returns the approval function for one rule.
func decider(rule Rule, ask converse.ApproveFunc, lasts bool) (converse.ApproveFunc, error) {
	decided := converse.Allow()
	switch rule.Action {
	case "", ActionAllow:
	case ActionDeny:
		decided = converse.Deny(cmp.Or(rule.Reason, reasonDenied))
	case ActionAsk, ActionDefer:
		return asking(rule, ask, lasts), nil
	default:
		return nil, fmt.Errorf("unknown action %q", rule.Action)
	}
	return func(context.Context, converse.Approval) (converse.Decision, error) { return decided, nil }, nil
}

// asking returns the approval function for a rule that asks or defers. It handles the
// errors [ErrLater] and [*UnansweredError] of ask, which may be nil. A rule that names a
// person asks no other one: the call waits for that person, or fails if it cannot wait.
func asking(rule Rule, ask converse.ApproveFunc, lasts bool) converse.ApproveFunc {
	if rule.Who != "" || ask == nil {
		ask = func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Decision{}, &UnansweredError{reasonNobody}
		}
	}
	return func(ctx context.Context, approval converse.Approval) (converse.Decision, error) {
		decision, err := ask(ctx, approval)
		var unanswered *UnansweredError
		switch nobody := errors.As(err, &unanswered); {
		case lasts && (errors.Is(err, ErrLater) || nobody && rule.Action == ActionDefer):
			return converse.Defer(rule.Within, rule.Who), nil
		case nobody:
			return converse.Deny(unanswered.Reason), nil
		case errors.Is(err, ErrLater):
			return converse.Deny(reasonNobody), nil
		}
		return decision, err
	}
}

// compiledRule is a [Rule] ready for use.
type compiledRule struct {
	Rule
	decide converse.ApproveFunc
}

func (rule *compiledRule) fits(approval *converse.Approval) bool {
	var hints invoker.Hints
	if approval.Definition != nil {
		hints = approval.Definition.Hints
	}
	all := conditions.Conditions{
		Ensembles: rule.Ensembles, Tools: rule.Tools,
		ReadOnly: rule.ReadOnly, Idempotent: rule.Idempotent, Destructive: rule.Destructive, OpenWorld: rule.OpenWorld,
	}
	return all.Fit(approval.Ensemble, approval.Tool, hints)
}

func (a *Approval) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("default", grammar.Choice(&a.Default, ActionAllow, ActionDeny, ActionAsk, ActionDefer)),
		grammar.Key("within", grammar.Duration(&a.Within)),
		grammar.Key("rules", grammar.Each(&a.Rules, func(rule *Rule) grammar.Kind { return grammar.Table(rule.fields(), rule.check) })),
	}
}

func (rule *Rule) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("action", grammar.Choice(&rule.Action, ActionAllow, ActionDeny, ActionAsk, ActionDefer)),
		grammar.Key("reason", grammar.Text(&rule.Reason)),
		grammar.Key("within", grammar.Duration(&rule.Within)),
		grammar.Key("who", grammar.Text(&rule.Who)),
		grammar.Key("ensembles", grammar.Each(&rule.Ensembles, grammar.Text)),
		grammar.Key("tools", grammar.Each(&rule.Tools, grammar.Text)),
		grammar.Key("read_only", grammar.Optional(&rule.ReadOnly, grammar.Boolean)),
		grammar.Key("idempotent", grammar.Optional(&rule.Idempotent, grammar.Boolean)),
		grammar.Key("destructive", grammar.Optional(&rule.Destructive, grammar.Boolean)),
		grammar.Key("open_world", grammar.Optional(&rule.OpenWorld, grammar.Boolean)),
	}
}

func (rule *Rule) check(r *grammar.Reader, n *document.Node) {
	if n.Member("action") == nil {
		r.Missing(n, "action", `missing: expected "allow", "deny", "ask" or "defer"`)
	}
	r.EmptyLists(n, "ensembles", "tools")
	if reason := n.Member("reason"); reason != nil && rule.Action != ActionDeny && rule.Action != "" {
		r.WrongKey(reason, `only a rule with action = "deny" gives a reason`)
	}
	for _, key := range []string{"within", "who"} {
		if stray := n.Member(key); stray != nil && rule.Action != ActionDefer && rule.Action != "" {
			r.WrongKey(stray, `only for a rule with action = "defer"`)
		}
	}
}
