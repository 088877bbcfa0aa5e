// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
)

// Money is an amount in millionths of the unit of a currency, given by
// [Policy.Currency].
type Money int64

// Unit is one unit of the currency, for example one dollar.
const Unit Money = 1_000_000

// MaxAmount is the maximum number of tokens, millionths or nanoseconds that may be
// reserved, spent at once or set as a cap. Accounts hold at most as much.
const MaxAmount = 1 << 60

// decimals is the number of decimal places of Money.
const decimals = 6

// ParseMoney parses an amount like "2.50": digits, optionally followed by a point and
// up to six more digits. Signs, exponents, spaces and thousands separators are not
// allowed, so that a text cannot be misread as another amount.
func ParseMoney(text string) (Money, error) {
	whole, part, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(part) {
		return 0, fmt.Errorf("budget: %s is not an amount of money; write digits with a point, such as 2.50", quote(text))
	}
	if len(part) > decimals {
		return 0, fmt.Errorf("budget: the amount %s has more than %d digits after the point", quote(text), decimals)
	}
	amount, err := strconv.ParseInt(whole+part+strings.Repeat("0", decimals-len(part)), 10, 64)
	if err != nil || amount > MaxAmount {
		return 0, fmt.Errorf("budget: the amount %s is more than %v", quote(text), Money(MaxAmount))
	}
	return Money(amount), nil
}

// quote returns a text in a form safe for errors, quoted and shortened.
func quote(text string) string {
	const most = 40
	quoted := strconv.QuoteToASCII(textcut.Prefix(text, most))
	if len(text) > most {
		quoted += textcut.Mark
	}
	return quoted
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// String returns the amount in the form that ParseMoney accepts, with two decimal
// places or as many as needed.
func (m Money) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	part := fmt.Sprintf("%06d", n%uint64(Unit))
	for len(part) > 2 && part[len(part)-1] == '0' {
		part = part[:len(part)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, n/uint64(Unit), part)
}

// Price is the price of a model per million tokens.
type Price struct {
	Input        Money
	Cached       Money // of input that the server read from its cache; 0 means the price of Input, negative nothing
	CacheWritten Money // of input that the server wrote to its cache; 0 means the price of Input, negative nothing
	Output       Money
}

// Cost returns the price of the tokens, rounded up to the next millionth, and at most
// MaxAmount. Negative counts and prices are treated as 0.
func (p Price) Cost(usage canister.Usage) Money {
	input := max(usage.Input, 0)
	cached := min(max(usage.Cached, 0), input)
	written := min(max(usage.CacheWritten, 0), input-cached)
	var sum product
	sum.add(input-cached-written, p.Input)
	sum.add(cached, p.orInput(p.Cached))
	sum.add(written, p.orInput(p.CacheWritten))
	sum.add(max(usage.Output, 0), p.Output)
	return sum.millionths()
}

// orInput returns a price of cached input, which is the price of Input if it is not set.
func (p Price) orInput(cached Money) Money {
	if cached == 0 {
		return p.Input
	}
	return max(cached, 0)
}

// most returns the maximum price of a request with that many tokens, cached or not.
func (p Price) most(input int64) Money {
	return Price{Input: max(p.Input, p.Cached, p.CacheWritten)}.Cost(canister.Usage{Input: input})
}

// affords returns how many output tokens the money pays for.
func (p Price) affords(money Money) int64 {
	switch {
	case money < 0:
		return 0
	case p.Output <= 0:
		return MaxAmount
	}
	hi, lo := bits.Mul64(uint64(money), uint64(Unit))
	if hi >= uint64(p.Output) {
		return MaxAmount
	}
	tokens, _ := bits.Div64(hi, lo, uint64(p.Output))
	return int64(min(tokens, MaxAmount))
}

// product is a sum of tokens times prices, in 128 bits.
type product struct{ hi, lo uint64 }

func (s *product) add(tokens int64, price Money) {
	hi, lo := bits.Mul64(uint64(tokens), uint64(max(price, 0)))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
}

// millionths divides by a million tokens, and rounds up.
func (s product) millionths() Money {
	if s.hi >= uint64(Unit) {
		return MaxAmount
	}
	money, rest := bits.Div64(s.hi, s.lo, uint64(Unit))
	if rest > 0 && money < MaxAmount {
		money++
	}
	return Money(min(money, MaxAmount))
}
