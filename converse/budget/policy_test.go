// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func policy(caps ...budget.Cap) *budget.Policy {
	return &budget.Policy{
		Ledger: budget.NewMemory(), Caps: caps, Currency: "EUR",
		Prices: map[string]budget.Price{"large": {Input: 2 * budget.Unit, Cached: budget.Unit, Output: 8 * budget.Unit}, "free": {}},
	}
}

// exchange is one of a conversation called talk.
func exchange(id string, input, answer int64) budget.Need {
	return budget.Need{ID: id, Who: budget.Who{Conversation: "talk", Identity: "ada"}, Model: "large", Exchange: true, Input: input, Answer: answer, Now: noon}
}

func reserve(t *testing.T, p *budget.Policy, need budget.Need) *budget.Hold {
	t.Helper()
	hold, err := p.Reserve(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

func settle(t *testing.T, hold *budget.Hold, spent budget.Spent, want budget.Amount) {
	t.Helper()
	got, err := hold.Settle(t.Context(), spent)
	if err != nil || got != want {
		t.Errorf("Settle: %+v, %v; want %+v", got, err, want)
	}
}

// reached checks that a need is refused, and the words of the error.
func reached(t *testing.T, p *budget.Policy, need budget.Need, words string) {
	t.Helper()
	_, err := p.Reserve(t.Context(), need)
	var reached *budget.ReachedError
	if !errors.As(err, &reached) || err.Error() != words {
		t.Errorf("Reserve: %v; want %s", err, words)
	}
}

func standing(t *testing.T, p *budget.Policy, at time.Time) budget.Standing {
	t.Helper()
	standings, err := p.Standings(t.Context(), budget.Who{Conversation: "talk", Identity: "ada"}, at)
	if err != nil || len(standings) != len(p.Caps) {
		t.Fatal(standings, err)
	}
	return standings[0]
}

// The answer is limited to the tokens and the money that the request leaves.
func TestAnswerIsBounded(t *testing.T) {
	for _, test := range []struct {
		cap           budget.Cap
		asked, answer int64
	}{
		{budget.Cap{Tokens: 100_000}, 0, 8192},
		{budget.Cap{Tokens: 100_000}, 500, 500},
		{budget.Cap{Tokens: 100_000}, 9000, 8192},
		{budget.Cap{Tokens: 2000}, 0, 1000},
		{budget.Cap{Tokens: 1016}, 0, 16},
		{budget.Cap{Tokens: 1001}, 1, 1},
		{budget.Cap{Money: budget.Unit}, 0, 8192},
		{budget.Cap{Money: 2000 + 8000}, 0, 1000},
		{budget.Cap{Money: 2000 + 8007}, 0, 1000}, // 0.875 of a token is rounded down to none
		{budget.Cap{Tokens: 2000, Money: 2000 + 800}, 0, 100},
		{budget.Cap{Time: time.Hour}, 700, 0}, // which bounds no tokens
	} {
		test.cap.Scope = budget.Conversation
		p := policy(test.cap)
		hold := reserve(t, p, exchange("r", 1000, test.asked))
		if want := test.answer; hold.Answer != want && !(want == 0 && hold.Answer == 0) {
			t.Errorf("under %+v, %d tokens are granted, want %d", test.cap, hold.Answer, want)
		}
	}
	p := policy(budget.Cap{Scope: budget.Conversation, Tokens: 1015})
	reached(t, p, exchange("r", 1000, 0),
		"the budget of 1015 tokens for each conversation does not suffice for the next step: 0 tokens are spent, and up to 1016 tokens are needed")
	p = policy(budget.Cap{Scope: budget.Identity, Window: budget.Day, Money: 2127})
	reached(t, p, exchange("r", 1000, 0),
		"the budget of 0.002127 EUR per day for each identity does not suffice for the next step: 0.00 EUR are spent, and up to 0.002128 EUR are needed")
}

// The overshoot of any answer that keeps its bound is nothing, whatever the
// prices and the limits.
func TestNeverOver(t *testing.T) {
	for _, limit := range []int64{17, 1000, 123_456, 99_999_999, budget.MaxAmount} {
		for _, price := range []budget.Price{
			{Input: 1, Output: 1}, {Input: 37_500, Output: 150_000}, {Input: 2_500_000, Cached: 3_000_000, Output: 10_000_001}, {Output: 999_999}, {},
		} {
			p := policy(budget.Cap{Scope: budget.Conversation, Tokens: limit, Money: budget.Money(limit)})
			p.Prices["large"] = price
			for i := range 400 {
				input := int64(i * 13 % 1000)
				hold, err := p.Reserve(t.Context(), exchange("r", input, int64(i%7)*100))
				if err != nil {
					continue
				}
				if _, err := hold.Settle(t.Context(), budget.Spent{Usage: &canister.Usage{Input: input, Cached: input / 2, Output: hold.Answer}}); err != nil {
					t.Fatal(err)
				}
			}
			if s := standing(t, p, noon); s.Spent.Tokens > limit || int64(s.Spent.Money) > limit || s.Reserved != (budget.Amount{}) {
				t.Errorf("of %d at %+v there is %+v", limit, price, s)
			}
		}
	}
}

// The spent amount replaces the reserved one; unknown amounts count as reserved, and a
// refused request costs nothing.
func TestSettle(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Conversation, Tokens: 100_000, Money: budget.Unit})
	hold := reserve(t, p, exchange("r1", 1000, 500))
	if s := standing(t, p, noon); s.Reserved != (budget.Amount{Tokens: 1500, Money: 2000 + 4000}) {
		t.Errorf("reserved is %+v", s.Reserved)
	}
	settle(t, hold, budget.Spent{Usage: &canister.Usage{Input: 800, Cached: 300, Output: 20}, Time: time.Hour},
		budget.Amount{Tokens: 820, Money: 1000 + 300 + 160})
	for _, unknown := range []*canister.Usage{nil, {}, {Input: -1, Output: 7}, {Input: 7, Output: math.MinInt64}} {
		settle(t, reserve(t, p, exchange("r2", 1000, 500)), budget.Spent{Usage: unknown}, budget.Amount{Tokens: 1500, Money: 6000})
	}
	settle(t, reserve(t, p, exchange("r2 output", 1000, 500)), budget.Spent{Usage: &canister.Usage{Output: 5}}, budget.Amount{Tokens: 1005, Money: 2040})
	settle(t, reserve(t, p, exchange("r3", 1000, 500)), budget.Spent{Nothing: true}, budget.Amount{})
	if s := standing(t, p, noon); s.Spent != (budget.Amount{Tokens: 820 + 6000 + 1005, Money: 1460 + 24000 + 2040}) || s.Reserved != (budget.Amount{}) {
		t.Errorf("there is %+v", s)
	}
	settle(t, reserve(t, p, exchange("r4", 1000, 500)),
		budget.Spent{Usage: &canister.Usage{Input: math.MaxInt64, Output: math.MaxInt64}}, budget.Amount{Tokens: budget.MaxAmount, Money: budget.MaxAmount})
	reached(t, p, exchange("r5", 1, 1),
		"the budget of 100000 tokens for each conversation does not suffice for the next step: 1152921504606846976 tokens are spent, and up to 2 tokens are needed")
}

// A conversation, an identity and a roster have their accounts, and so has each
// window.
func TestScopesAndWindows(t *testing.T) {
	ada := budget.Who{Conversation: "talk", Identity: "ada"}
	for _, test := range []struct {
		scope          budget.Scope
		who            budget.Who
		roster, shared string
	}{
		{budget.Conversation, budget.Who{Conversation: "talk", Identity: "bob"}, "other", "shared"},
		{budget.Conversation, budget.Who{Conversation: "other", Identity: "ada"}, "", ""},
		{budget.Identity, budget.Who{Conversation: "other", Identity: "ada"}, "other", "shared"},
		{budget.Identity, budget.Who{Conversation: "talk", Identity: "bob"}, "", ""},
		{budget.Roster, budget.Who{Conversation: "other", Identity: "bob"}, "", "shared"},
		{budget.Roster, ada, "other", ""},
	} {
		p := policy(budget.Cap{Scope: test.scope, Tokens: 1000})
		reserve(t, p, exchange("r", 600, 100))
		other := *p
		other.Roster = test.roster
		need := exchange("s", 600, 100)
		need.Who = test.who
		if _, err := other.Reserve(t.Context(), need); (err != nil) != (test.shared != "") {
			t.Errorf("%s, %+v and %q: %v", test.scope, test.who, test.roster, err)
		}
	}
	for window, ends := range map[budget.Window]time.Time{
		budget.Hour:     time.Date(2026, 3, 14, 13, 0, 0, 0, time.UTC),
		budget.Day:      time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC),
		budget.Month:    time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
		budget.Lifetime: time.Date(2999, 4, 1, 0, 0, 0, 0, time.UTC),
	} {
		p := policy(budget.Cap{Scope: budget.Identity, Window: window, Tokens: 1000})
		hold := reserve(t, p, exchange("r", 600, 100))
		second := exchange("s", 600, 100)
		second.Now = ends.Add(-time.Nanosecond).In(time.FixedZone("far", 11*3600))
		if _, err := p.Reserve(t.Context(), second); err == nil {
			t.Errorf("%q is over before %v", window, ends)
		}
		if second.Now = ends; window == budget.Lifetime {
			continue
		}
		if _, err := p.Reserve(t.Context(), second); err != nil {
			t.Errorf("%q is not over at %v: %v", window, ends, err)
		}
		settle(t, hold, budget.Spent{Usage: &canister.Usage{Input: 500, Output: 1}}, budget.Amount{Tokens: 501, Money: 1008})
		want := int64(501)
		if window == budget.Month {
			want = 700 // it has expired
		}
		if s := standing(t, p, noon); s.Spent.Tokens != want {
			t.Errorf("%q: what was reserved in it was not spent in it: %+v", window, s)
		}
	}
}

// Time is reserved in steps, and settled.
func TestTime(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Conversation, Time: time.Hour}, budget.Cap{Scope: budget.Identity, Window: budget.Day, Time: 40 * time.Minute})
	need := func(id string) budget.Need {
		return budget.Need{ID: id, Who: budget.Who{Conversation: "talk", Identity: "ada"}, Time: true, Now: noon}
	}
	first, second, third := reserve(t, p, need("a")), reserve(t, p, need("b")), reserve(t, p, need("c"))
	if first.Time != 15*time.Minute || second.Time != 15*time.Minute || third.Time != 10*time.Minute {
		t.Errorf("%v, %v and %v were granted", first.Time, second.Time, third.Time)
	}
	if err := third.TimeIsUp(); err == nil || err.Error() != "the 10m0s are over that the budget of 40m0s per day for each identity had left" {
		t.Error(err)
	}
	reached(t, p, need("d"),
		"the budget of 40m0s per day for each identity does not suffice for the next step: 0s are spent, 40m0s are reserved for work in progress, and up to 1ms are needed")
	settle(t, first, budget.Spent{Time: time.Minute}, budget.Amount{Time: time.Minute})
	settle(t, second, budget.Spent{Time: -time.Minute}, budget.Amount{})
	if hold := reserve(t, p, need("d")); hold.Time != 15*time.Minute {
		t.Errorf("%v were granted", hold.Time)
	}
	exchange := exchange("e", 10, 10)
	if hold := reserve(t, p, exchange); hold.Time != 0 || hold.TimeIsUp() != nil {
		t.Errorf("an exchange without time of its own was granted %v", hold.Time)
	}
}

// Names of accounts reveal neither the user nor the conversation.
func TestAccountsTellNothing(t *testing.T) {
	names := &watched{Ledger: budget.NewMemory()}
	p := policy(budget.Cap{Scope: budget.Conversation, Tokens: 1000}, budget.Cap{Scope: budget.Identity, Tokens: 1000},
		budget.Cap{Scope: budget.Roster, Window: budget.Day, Money: 1000})
	p.Ledger, p.Roster = names, "secret-roster"
	need := exchange("r", 10, 10)
	need.Who = budget.Who{Conversation: "secret-talk", Identity: "secret-ada"}
	reserve(t, p, need)
	if text := strings.Join(names.accounts, " "); len(names.accounts) != 3 || strings.Contains(text, "secret") ||
		!strings.HasSuffix(text, "/2026-03-14/money/EUR") {
		t.Errorf("the accounts are %s", text)
	}
}

func TestCheck(t *testing.T) {
	good := budget.Cap{Scope: budget.Identity, Window: budget.Day, Tokens: 1}
	paid := budget.Cap{Scope: budget.Identity, Money: 1}
	for words, change := range map[string]func(*budget.Policy){
		"": func(p *budget.Policy) {
			p.Caps = append(p.Caps, budget.Cap{Scope: budget.Identity, Tokens: 1, Money: 1})
		},
		"no ledger":                      func(p *budget.Policy) { p.Ledger = nil },
		"scope is \"everybody\"":         func(p *budget.Policy) { p.Caps[0].Scope = "everybody" },
		"scope is \"\"":                  func(p *budget.Policy) { p.Caps[0].Scope = "" },
		"window is \"week\"":             func(p *budget.Policy) { p.Caps[0].Window = "week" },
		"neither tokens, money nor":      func(p *budget.Policy) { p.Caps[0].Tokens = 0 },
		"tokens is -1":                   func(p *budget.Policy) { p.Caps[0].Tokens = -1 },
		"time is -1":                     func(p *budget.Policy) { p.Caps[0].Time = -1 },
		"money is 1152921504606":         func(p *budget.Policy) { p.Caps[0].Money = budget.MaxAmount + 1 },
		"cap 1: another cap also limits": func(p *budget.Policy) { p.Caps = append(p.Caps, good) },
		"needs a price for the model":    func(p *budget.Policy) { p.Caps = append(p.Caps, paid); delete(p.Prices, "large") },
		"currency is \"\"":               func(p *budget.Policy) { p.Caps = append(p.Caps, paid); p.Currency = "" },
		"currency is \"E/R\"":            func(p *budget.Policy) { p.Caps = append(p.Caps, paid); p.Currency = "E/R" },
		"price of -0.000001":             func(p *budget.Policy) { p.Prices["other"] = budget.Price{Output: -1} },
		"Answer is -1":                   func(p *budget.Policy) { p.Answer = -1 },
		"Step -1":                        func(p *budget.Policy) { p.Step = -1 },
	} {
		p := policy(good)
		change(p)
		err := p.Check("large")
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%q: %v", words, err)
		}
	}
	if err := policy(good).Check("unknown"); err != nil {
		t.Errorf("without a cap of money, a model needs no price: %v", err)
	}
}

// Two live processes that ask for the same answer are both charged.
func TestSameExchangeTwice(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Identity, Tokens: 100000})
	first := reserve(t, p, exchange("answer", 1000, 0))
	second := reserve(t, p, exchange("answer", 1000, 0))
	usage := budget.Spent{Usage: &canister.Usage{Input: 1000, Output: 5000}}
	for _, hold := range []*budget.Hold{first, second, first} {
		if _, err := hold.Settle(t.Context(), usage); err != nil {
			t.Fatal(err)
		}
	}
	if is := standing(t, p, noon); is.Spent.Tokens != 12000 || is.Reserved.Tokens != 0 {
		t.Errorf("%+v after 12000 tokens were spent", is)
	}
}

// cancelled is a ledger whose caller leaves while a reservation is committed.
type cancelled struct {
	budget.Ledger
	leave context.CancelFunc
	known bool // the ledger says so
}

func (c *cancelled) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	amounts, err := c.Ledger.Reserve(ctx, r)
	c.leave()
	if c.known {
		err = ctx.Err()
	}
	return amounts, err
}

// A caller who leaves while a reservation is committed leaves no amount reserved.
func TestCancelledReserve(t *testing.T) {
	for _, known := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		memory := budget.NewMemory()
		p := budget.Policy{Ledger: &cancelled{memory, cancel, known}, Caps: []budget.Cap{{Scope: budget.Conversation, Time: time.Hour}}}
		need := budget.Need{ID: "work", Time: true, Who: budget.Who{Conversation: "talk"}, Now: time.Now()}
		if _, err := p.Reserve(ctx, need); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		standings, err := p.Standings(t.Context(), need.Who, need.Now)
		if err != nil || standings[0].Reserved != (budget.Amount{}) || standings[0].Spent != (budget.Amount{}) {
			t.Errorf("%+v, %v", standings, err)
		}
	}
}
