// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
)

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]budget.Money{
		"0": 0, "2.50": 2_500_000, "2.5": 2_500_000, "0.000001": 1, "12": 12_000_000, "007.10": 7_100_000,
		"1152921504606.846976": budget.MaxAmount,
	} {
		if got, err := budget.ParseMoney(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "-1", "+1", " 1", "1 ", "1e3", "1,50", "1.000,5", "1_000", "0x10", "NaN", "Inf", "∞", "٣",
		"0.0000001", "1152921504606.846977", "99999999999999999999", strings.Repeat("9", 1000), "2.50 EUR", "2.5\x00", "1.2.3",
	} {
		if got, err := budget.ParseMoney(text); err == nil {
			t.Errorf("%q is %v; it must be an error", text, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("the error about %.20q… has %d bytes", text, len(err.Error()))
		}
	}
}

func TestMoneyString(t *testing.T) {
	for money, want := range map[budget.Money]string{
		0: "0.00", 1: "0.000001", 2_500_000: "2.50", 1_234_500: "1.2345", -1_500_000: "-1.50", math.MinInt64: "-9223372036854.775808",
	} {
		if got := money.String(); got != want {
			t.Errorf("%d is %s, want %s", int64(money), got, want)
		}
	}
}

// Whatever is taken for an amount is that number exactly, and comes back.
func FuzzParseMoney(f *testing.F) {
	for _, text := range []string{"2.50", "0", "1e9", "-3", "1152921504606.846976", "0.0000010", ".1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		money, err := budget.ParseMoney(text)
		if err != nil {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok || exact.Cmp(big.NewRat(int64(money), int64(budget.Unit))) != 0 || money < 0 || money > budget.MaxAmount {
			t.Fatalf("%q is taken for %d", text, money)
		}
		if again, err := budget.ParseMoney(money.String()); err != nil || again != money {
			t.Fatalf("%q becomes %s, and that %d, %v", text, money, again, err)
		}
	})
}

// A cost is the sum of the products, rounded up, and at most budget.MaxAmount.
func TestCost(t *testing.T) {
	gpt := budget.Price{Input: 2_500_000, Cached: 1_250_000, Output: 10_000_000}
	claude := budget.Price{Input: 3_000_000, Cached: 300_000, CacheWritten: 3_750_000, Output: 15_000_000}
	for _, test := range []struct {
		price budget.Price
		usage canister.Usage
		want  budget.Money
	}{
		{gpt, canister.Usage{}, 0},
		{gpt, canister.Usage{Input: 1_000_000}, 2_500_000},
		{gpt, canister.Usage{Input: 1_000_000, Cached: 400_000, Output: 10}, 1_500_000 + 500_000 + 100},
		{claude, canister.Usage{Input: 1_000_000, Cached: 500_000, CacheWritten: 400_000, Output: 10}, 300_000 + 150_000 + 1_500_000 + 150},
		{claude, canister.Usage{Input: 10, Cached: 4, CacheWritten: 99}, 24}, // 1.2 and 22.5 millionths
		{gpt, canister.Usage{Input: 10, CacheWritten: 10}, 25},               // written as any
		{gpt, canister.Usage{Input: 1}, 3},                                   // 2.5 millionths
		{gpt, canister.Usage{Input: 2}, 5},
		{gpt, canister.Usage{Input: 10, Cached: 99}, 13},
		{claude, canister.Usage{Input: -5, Cached: -5, CacheWritten: -5, Output: -5}, 0},
		{budget.Price{Input: 1_000_000}, canister.Usage{Input: 10, Cached: 10}, 10}, // cached as any
		{budget.Price{}, canister.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, 0},
		{budget.Price{Input: budget.MaxAmount, Output: budget.MaxAmount}, canister.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, budget.MaxAmount},
	} {
		if got := test.price.Cost(test.usage); got != test.want {
			t.Errorf("%+v at %+v costs %d, want %d", test.usage, test.price, got, test.want)
		}
	}
	random := rand.New(rand.NewPCG(2, 50))
	for range 20000 {
		p := budget.Price{
			Input:  budget.Money(random.Int64N(1 << random.IntN(61))),
			Cached: 1 + budget.Money(random.Int64N(1<<random.IntN(60))), CacheWritten: 1 + budget.Money(random.Int64N(1<<random.IntN(60))),
			Output: budget.Money(random.Int64N(1 << random.IntN(61))),
		}
		u := canister.Usage{Input: random.Int64N(1 << random.IntN(62)), Output: random.Int64N(1 << random.IntN(62))}
		u.Cached = random.Int64N(u.Input + 1)
		u.CacheWritten = random.Int64N(u.Input - u.Cached + 1)
		times := func(tokens int64, price budget.Money) *big.Int {
			return new(big.Int).Mul(big.NewInt(tokens), big.NewInt(int64(price)))
		}
		sum := times(u.Input-u.Cached-u.CacheWritten, p.Input)
		sum.Add(sum, times(u.Cached, p.Cached)).Add(sum, times(u.CacheWritten, p.CacheWritten)).Add(sum, times(u.Output, p.Output))
		sum.Add(sum, big.NewInt(999_999)).Div(sum, big.NewInt(1_000_000))
		if most := big.NewInt(budget.MaxAmount); sum.Cmp(most) > 0 {
			sum = most
		}
		if got := p.Cost(u); int64(got) != sum.Int64() {
			t.Fatalf("%+v at %+v costs %d, want %d", u, p, got, sum)
		}
	}
}
