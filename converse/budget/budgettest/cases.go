// SPDX-License-Identifier: Apache-2.0

package budgettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// ledgerCases are the rules that apply to every ledger.
var ledgerCases = []ledgerCase{
	{"Reserve/most", "", "a line is granted its maximum, or the rest of the limit if that is less", reserveMost},
	{"Reserve/least", "", "a line is denied if the rest is less than its minimum, and the error explains why", reserveLeast},
	{"Reserve/all", "", "a reservation counts on all accounts or on none", reserveAll},
	{"Reserve/again", "", "a repeated reservation counts once, and may differ from the first", reserveAgain},
	{"Reserve/attempts", "", "an attempt replaces the other attempts at its work, which can still be settled, once", reserveAttempts},
	{"Reserve/nothing", "", "a reservation without lines, or of zero, is valid", reserveNothing},
	{"Reserve/bad", "", "an invalid reservation is an error other than a denial, without an effect", reserveBad},
	{"Settle/less", "", "Settle replaces the reserved amount by the spent one, and releases the rest", settleLess},
	{"Settle/more", "", "spending more than was reserved makes a debt", settleMore},
	{"Settle/as-reserved", "", "Settle without an account counts its reserved amount as spent", settleAsReserved},
	{"Settle/twice", "", "a second Settle, and one without a reservation, has no effect", settleTwice},
	{"Settle/bad", "", "amounts below zero or above the maximum are errors without an effect", settleBad},
	{"Expire", "", "a reservation that is not settled in time counts as spent, and can no longer be settled", expires},
	{"Ends", "", "an account is kept for budget.Keep after its end", accountEnds},
	{"Clock/ahead", "", "a caller whose clock is ahead settles and removes nothing that others still use", clockAhead},
	{"Amounts/large", "", "an account never exceeds the maximum, and no sum overflows", amountsLarge},
	{"Names/odd", "", "accounts and reservations with unusual names are distinct", namesOdd},
	{"End/context", "", "calls with a context that has ended have no effect and return its error", ledgerContext},
	{"Race/limit", "", "concurrent reservations are together not granted more than the limit", func(s *ledgerSubject) { s.race(s.ledger) }},
	{"Race/limit-of-two", shared, "the same between two open ledgers", func(s *ledgerSubject) { s.race(s.ledger, s.open()) }},
	{"Race/same", "", "a reservation that is made several times concurrently counts once", raceSame},
	{"Shared/seen", shared, "changes by one open ledger are visible in another at once", ledgerSeen},
	{"Random", "", "a random sequence of calls gives the same results as the ledger in memory", func(s *ledgerSubject) { s.random(func() budget.Ledger { return s.ledger }) }},
	{"Random/reopened", shared, "the same when the ledger is reopened repeatedly", func(s *ledgerSubject) { s.random(s.open) }},
}

func reserveMost(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 60)), 60)
	s.reserves(reservation("r2", line("a", 100, 10, 60)), 40)
	s.holds("a", 0, 100)
	s.holds("b", 0, 0)
}

func reserveLeast(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 60)), 60)
	s.settles("r1", map[string]int64{"a": 50})
	s.reserves(reservation("r2", line("a", 100, 41, 41)), 41)
	s.denies(reservation("r3", line("a", 100, 10, 60)), 0, budget.Balance{Spent: 50, Reserved: 41})
	s.reserves(reservation("r3", line("a", 100, 9, 60)), 9)
	s.reserves(reservation("r4", line("a", 200, 10, 60)), 60) // the limit is the caller's
	s.holds("a", 50, 110)
}

func reserveAll(s *ledgerSubject) {
	s.reserves(reservation("r1", line("b", 100, 95, 95)), 95)
	s.denies(reservation("r2", line("a", 100, 10, 10), line("b", 100, 10, 10), line("c", 100, 10, 10)), 1, budget.Balance{Reserved: 95})
	s.holds("a", 0, 0)
	s.holds("b", 0, 95)
	s.holds("c", 0, 0)
	s.settles("r2", map[string]int64{"a": 7})
	s.holds("a", 0, 0)
}

func reserveAgain(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 60), line("b", 100, 1, 1)), 60, 1)
	s.reserves(reservation("r1", line("a", 100, 10, 60), line("b", 100, 1, 1)), 60, 1)
	s.holds("a", 0, 60)
	s.reserves(reservation("r1", line("a", 100, 10, 90), line("c", 100, 5, 5)), 90, 5)
	s.holds("a", 0, 90)
	s.holds("b", 0, 0)
	s.holds("c", 0, 5)
	s.denies(reservation("r1", line("a", 80, 81, 90)), 0, budget.Balance{})
	s.holds("a", 0, 90)
	s.holds("c", 0, 5)
	s.settles("r1", map[string]int64{"a": 20, "b": 9, "c": 5})
	s.holds("a", 20, 0)
	s.holds("b", 0, 0)
	s.reserves(reservation("r1", line("a", 100, 10, 90)), 80) // it was settled: this is a new one
	s.holds("a", 20, 80)
}

func reserveAttempts(s *ledgerSubject) {
	attempt := func(id string, lines ...budget.Line) budget.Reservation {
		r := reservation(id, lines...)
		r.Work = "w"
		return r
	}
	s.reserves(reservation("w2#1", line("a", 100, 10, 20)), 20) // other work
	s.reserves(attempt("w#1", line("a", 100, 10, 60), line("b", 100, 10, 60)), 60, 60)
	s.denies(attempt("w#2", line("a", 100, 81, 90)), 0, budget.Balance{Reserved: 20})
	s.holds("a", 0, 80)
	s.reserves(attempt("w#2", line("a", 100, 10, 90)), 80)
	s.reserves(attempt("w#2", line("a", 100, 10, 90)), 80) // repeated
	s.holds("a", 0, 100)
	s.holds("b", 0, 0)
	for range 2 {
		s.settles("w#1", map[string]int64{"a": 7, "b": 5})
		s.holds("a", 7, 100)
		s.holds("b", 5, 0)
	}
	for range 2 {
		s.settles("w#2", map[string]int64{"a": 30})
		s.holds("a", 37, 20)
	}
	s.reserves(attempt("w#3", line("a", 100, 10, 20)), 20)
	s.reserves(attempt("w#4", line("a", 100, 10, 20)), 20)
	later := reservation("x", line("c", 100, 0, 0))
	later.Now = noon.Add(24 * time.Hour)
	s.reserves(later, 0)
	s.holds("a", 77, 0) // w#3 has nothing reserved when it expires
}

func clockAhead(s *ledgerSubject) {
	now := time.Now()
	month := line("a", 100, 10, 20)
	month.Ends = now.Add(12 * time.Hour)
	for id, ends := range map[string]time.Duration{"r1": 24 * time.Hour, "r2": 23 * time.Hour} {
		s.reserves(budget.Reservation{ID: id, Lines: []budget.Line{month}, Now: now, Expires: now.Add(ends)}, 20)
	}
	s.settles("r2", map[string]int64{"a": 9})
	ahead := now.Add(50 * 24 * time.Hour)
	s.reserves(budget.Reservation{ID: "ahead", Lines: []budget.Line{line("b", 100, 1, 1)}, Now: ahead, Expires: ahead.Add(time.Hour)}, 1)
	s.holds("a", 9, 20)
	s.settles("r1", map[string]int64{"a": 1})
	s.reserves(budget.Reservation{ID: "later", Lines: []budget.Line{line("b", 100, 1, 1)}, Now: ahead, Expires: ahead.Add(time.Hour)}, 1)
	s.holds("a", 10, 0)
}

func reserveNothing(s *ledgerSubject) {
	s.reserves(reservation("r1"))
	s.reserves(reservation("r2", line("a", 0, 0, 5)), 0)
	s.reserves(reservation("r3", line("a", 100, 0, 0)), 0)
	s.holds("a", 0, 0)
	s.settles("r1", nil)
	s.settles("r2", map[string]int64{"a": 3})
	s.holds("a", 3, 0)
}

func reserveBad(s *ledgerSubject) {
	good := line("a", 100, 1, 10)
	for what, r := range map[string]budget.Reservation{
		"no identity":                 reservation("", good),
		"a control character":         reservation("r\x00", good),
		"no UTF-8":                    reservation("r\xff", good),
		"a long identity":             reservation(strings.Repeat("r", 257), good),
		"no account":                  reservation("r", good, line("", 100, 1, 10)),
		"an account twice":            reservation("r", good, good),
		"a negative amount":           reservation("r", good, line("b", 100, -1, 10)),
		"a minimum above the maximum": reservation("r", good, line("b", 100, 11, 10)),
		"an amount above budget.Max":  reservation("r", good, line("b", 100, 1, budget.MaxAmount+1)),
		"a negative limit":            reservation("r", good, line("b", -1, 0, 10)),
		"a limit above budget.Max":    reservation("r", good, line("b", budget.MaxAmount+1, 0, 10)),
	} {
		_, err := s.ledger.Reserve(s.context(), r)
		if denied := new(budget.DeniedError); err == nil || errors.As(err, &denied) {
			s.Errorf("Reserve with %s is %v, want an error of another kind", what, err)
		}
	}
	s.holds("a", 0, 0)
}

func settleLess(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 100), line("b", 100, 10, 50)), 100, 50)
	s.settles("r1", map[string]int64{"a": 30, "b": 0})
	s.holds("a", 30, 0)
	s.holds("b", 0, 0)
	s.reserves(reservation("r2", line("a", 100, 10, 100)), 70)
}

func settleMore(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	s.settles("r1", map[string]int64{"a": 130})
	s.holds("a", 130, 0)
	s.denies(reservation("r2", line("a", 100, 1, 20)), 0, budget.Balance{Spent: 130})
	s.reserves(reservation("r3", line("a", 100, 0, 20)), 0)
}

func settleAsReserved(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20), line("b", 100, 10, 30)), 20, 30)
	s.settles("r1", map[string]int64{"b": 5, "c": 50})
	s.holds("a", 20, 0)
	s.holds("b", 5, 0)
	s.holds("c", 0, 0) // not an account of the reservation
	s.reserves(reservation("r2", line("a", 100, 10, 20)), 20)
	s.settles("r2", nil)
	s.holds("a", 40, 0)
}

func settleTwice(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	s.reserves(reservation("r2", line("a", 100, 10, 20)), 20)
	for range 2 {
		s.settles("r1", map[string]int64{"a": 7})
		s.settles("nobody", map[string]int64{"a": 7})
		s.holds("a", 7, 20)
	}
}

func settleBad(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	for _, amount := range []int64{-1, budget.MaxAmount + 1} {
		if err := s.ledger.Settle(s.context(), "r1", map[string]int64{"a": amount}); err == nil {
			s.Errorf("Settle accepts a spent amount of %d", amount)
		}
	}
	s.holds("a", 0, 20)
}

func expires(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	later := reservation("r2", line("a", 100, 80, 100))
	later.Now = noon.Add(24*time.Hour - time.Second)
	s.reserves(later, 80) // r1 counts until it expires
	s.settles("r2", map[string]int64{"a": 0})
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	later.ID, later.Now = "r3", noon.Add(24*time.Hour)
	s.reserves(later, 80) // and afterwards
	s.settles("r1", map[string]int64{"a": 1})
	s.settles("r3", map[string]int64{"a": 0})
	s.holds("a", 20, 0)
}

func accountEnds(s *ledgerSubject) {
	today := line("a", 100, 10, 20)
	today.Ends = noon.Add(12 * time.Hour)
	s.reserves(reservation("r1", today), 20)
	s.settles("r1", nil)
	other := reservation("r2", line("b", 100, 10, 20))
	other.Now = today.Ends.Add(budget.Keep - time.Second)
	other.Expires = other.Now.Add(time.Hour)
	s.reserves(other, 20)
	s.holds("a", 20, 0)
	other.ID, other.Now = "r3", today.Ends.Add(budget.Keep)
	s.reserves(other, 20)
	s.holds("b", 0, 40)
	s.reserves(reservation("r4", line("a", 10, 0, 5)), min(5, max(0, 10-s.spent("a")))) // remembered or forgotten
}

// spent returns the amount that an account has spent.
func (s *ledgerSubject) spent(account string) int64 {
	balances, err := s.ledger.Balances(s.context(), account)
	if err != nil {
		s.Fatal(err)
	}
	return balances[0].Spent
}

func amountsLarge(s *ledgerSubject) {
	const most = budget.MaxAmount
	s.reserves(reservation("r1", line("a", most, most, most)), most)
	s.denies(reservation("r2", line("a", most, 1, most)), 0, budget.Balance{Reserved: most})
	for range 20 {
		s.settles("r1", map[string]int64{"a": most})
		s.holds("a", most, 0)
		s.reserves(reservation("r1", line("a", most, 0, most)), 0)
	}
}

func namesOdd(s *ledgerSubject) {
	names := []string{"a", "A", "ä", "a\u0308", " a", "a ", "../a", "a/b", `a"b\`, "a'b", "%", "_", "NULL", "👥", strings.Repeat("n", 256), "identity/x/2026-03-14/tokens"}
	for i, name := range names {
		s.reserves(reservation(name, line(name, 100, 1, int64(i+1))), int64(i+1))
	}
	for i, name := range names {
		s.holds(name, 0, int64(i+1))
		s.settles(name, map[string]int64{name: 50})
		s.holds(name, 50, 0)
	}
	balances, err := s.ledger.Balances(s.context(), "a", "nobody", "a", "A")
	if err != nil || !slices.Equal(balances, []budget.Balance{{Spent: 50}, {}, {Spent: 50}, {Spent: 50}}) {
		s.Errorf("Balances of several accounts: %v, %v", balances, err)
	}
	if balances, err := s.ledger.Balances(s.context()); err != nil || len(balances) != 0 {
		s.Errorf("Balances of no account: %v, %v", balances, err)
	}
}

func ledgerContext(s *ledgerSubject) {
	s.reserves(reservation("r1", line("a", 100, 10, 20)), 20)
	ended, cancel := context.WithCancel(s.context())
	cancel()
	_, reserving := s.ledger.Reserve(ended, reservation("r2", line("a", 100, 10, 20)))
	_, looking := s.ledger.Balances(ended, "a")
	for what, err := range map[string]error{"Reserve": reserving, "Settle": s.ledger.Settle(ended, "r1", nil), "Balances": looking} {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a context that has ended is %v", what, err)
		}
	}
	s.holds("a", 0, 20)
}

// race reserves and settles from many goroutines, on accounts in any order, and checks
// that the accounts never exceed their limits.
func (s *ledgerSubject) race(ledgers ...budget.Ledger) {
	const workers, rounds, limit = 16, 20, 1000
	ctx := s.context()
	var held, most, spent [3]atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		ledger, random := ledgers[worker%len(ledgers)], rand.New(rand.NewPCG(1, uint64(worker)))
		wait.Go(func() {
			for round := range rounds {
				places := random.Perm(len(held))[:1+random.IntN(len(held))]
				r := reservation(fmt.Sprintf("%d/%d", worker, round))
				for _, place := range places {
					r.Lines = append(r.Lines, line(fmt.Sprint("race", place), limit, 20, 100))
				}
				granted, err := ledger.Reserve(ctx, r)
				if denied := new(budget.DeniedError); errors.As(err, &denied) {
					continue
				} else if err != nil {
					s.Errorf("Reserve: %v", err)
					return
				}
				used := map[string]int64{}
				for i, place := range places {
					now := held[place].Add(granted[i])
					for was := most[place].Load(); now > was && !most[place].CompareAndSwap(was, now); was = most[place].Load() {
					}
					used[r.Lines[i].Account] = granted[i] / 4
					spent[place].Add(granted[i] / 4)
					held[place].Add(granted[i]/4 - granted[i])
				}
				if err := ledger.Settle(ctx, r.ID, used); err != nil {
					s.Errorf("Settle: %v", err)
				}
			}
		})
	}
	wait.Wait()
	for place := range held {
		if most[place].Load() > limit {
			s.Errorf("%[2]d of a limit of %[1]d were reserved at the same time", limit, most[place].Load())
		}
		s.holds(fmt.Sprint("race", place), spent[place].Load(), 0)
	}
}

func raceSame(s *ledgerSubject) {
	ctx := s.context()
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			lines := []budget.Line{line("a", 100, 60, 60), line("b", 100, 60, 60)}
			if i%2 == 0 {
				slices.Reverse(lines)
			}
			if _, err := s.ledger.Reserve(ctx, reservation("r", lines...)); err != nil {
				s.Errorf("Reserve: %v", err)
			}
		})
	}
	wait.Wait()
	s.holds("a", 0, 60)
	s.holds("b", 0, 60)
	for range 12 {
		wait.Go(func() {
			if err := s.ledger.Settle(ctx, "r", map[string]int64{"a": 9, "b": 8}); err != nil {
				s.Errorf("Settle: %v", err)
			}
		})
	}
	wait.Wait()
	s.holds("a", 9, 0)
	s.holds("b", 8, 0)
}

func ledgerSeen(s *ledgerSubject) {
	other := &ledgerSubject{T: s.T, Harness: s.Harness, ledger: s.open()}
	s.reserves(reservation("r1", line("a", 100, 10, 60)), 60)
	other.holds("a", 0, 60)
	other.reserves(reservation("r2", line("a", 100, 10, 60)), 40)
	other.settles("r1", map[string]int64{"a": 10})
	s.holds("a", 10, 40)
	s.settles("r1", map[string]int64{"a": 20})
	third := &ledgerSubject{T: s.T, Harness: s.Harness, ledger: s.open()}
	third.holds("a", 10, 40)
}

// random does the same to the ledger and to one in memory.
func (s *ledgerSubject) random(ledger func() budget.Ledger) {
	ctx := s.context()
	memory := budget.NewMemory()
	random := rand.New(rand.NewPCG(6, 20))
	names := []string{"a", "b", "c", "d"}
	now := noon
	for step := range 200 {
		if step%20 == 0 {
			s.ledger = ledger()
		}
		id := fmt.Sprint("r", random.IntN(6))
		now = now.Add(time.Duration(random.IntN(60)) * time.Minute)
		if random.IntN(3) == 0 {
			spent := map[string]int64{}
			for _, name := range names {
				if random.IntN(2) == 0 {
					spent[name] = random.Int64N(80)
				}
			}
			if err := s.ledger.Settle(ctx, id, maps.Clone(spent)); err != nil {
				s.Fatal(err)
			}
			_ = memory.Settle(ctx, id, spent)
		} else {
			r := budget.Reservation{ID: id, Now: now, Expires: now.Add(5 * time.Hour)}
			for _, place := range random.Perm(len(names))[:1+random.IntN(len(names))] {
				least := random.Int64N(50)
				r.Lines = append(r.Lines, line(names[place], int64(1+step)*20, least, least+random.Int64N(50)))
			}
			got, err := s.ledger.Reserve(ctx, r)
			want, wantErr := memory.Reserve(ctx, r)
			if !slices.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				s.Fatalf("step %d: Reserve of %+v is %d and %v, want %d and %v", step, r, got, err, want, wantErr)
			}
		}
		for _, name := range names {
			is, err := s.ledger.Balances(ctx, name)
			want, _ := memory.Balances(ctx, name)
			if err != nil || is[0].Held() != want[0].Held() { // expired reservations may be reported either way
				s.Fatalf("step %d: the account %s holds %+v, want %+v (%v)", step, name, is, want, err)
			}
		}
	}
}

// shared marks a case for ledgers that several processes can use at once.
const shared = "shared"
