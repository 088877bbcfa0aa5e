// SPDX-License-Identifier: Apache-2.0

// Package ledgerrace runs processes that compete for the balance of one account. It is
// for tests of ledgers that several processes share: the test program starts itself again
// as a child, which calls [Spend].
package ledgerrace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

const (
	account = "race"
	limit   = 8000
	least   = 20
	most    = 50
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// victim is the process that is killed; killed is how many reservations it settles
// before.
const (
	victim = "p0"
	killed = 10
)

// Spend waits for the end of its standard input, and then reserves and settles until the
// account is exhausted. It writes a line after each step: the granted amount after a
// reservation, and the spent amount after a settlement. The victim stops between the two
// steps and waits to be killed.
func Spend(ledger budget.Ledger, name string, out io.Writer) error {
	ctx := context.Background()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for n := 0; ; n++ {
		id := fmt.Sprint(name, "/", n)
		granted, err := ledger.Reserve(ctx, budget.Reservation{
			ID: id, Now: noon, Expires: noon.Add(24 * time.Hour),
			Lines: []budget.Line{{Account: account, Limit: limit, Least: least, Most: most}, {Account: "of " + name, Limit: budget.MaxAmount, Most: most}},
		})
		if denied := new(budget.DeniedError); errors.As(err, &denied) {
			if denied.Balance.Spent+least+most > limit {
				return nil
			}
			continue // others will release some
		} else if err != nil {
			return err
		}
		fmt.Fprintln(out, "may", granted[0])
		if name == victim && n == killed {
			time.Sleep(time.Hour) // it is killed
		}
		if err := ledger.Settle(ctx, id, map[string]int64{account: granted[0] - 7}); err != nil {
			return err
		}
		fmt.Fprintln(out, "has", granted[0]-7)
	}
}

// Test runs three processes created by start. The first is killed between a reservation
// and its settlement, and the others compete for the rest. Test checks that all together
// are granted no more than the limit, and that the account contains every acknowledged
// settlement.
func Test(t *testing.T, ledger budget.Ledger, start func(name string) *exec.Cmd) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	r := &race{T: t}
	first := r.start(start(victim))
	others := []*racer{r.start(start("p1")), r.start(start("p2"))}
	first.runs(true)
	var wait sync.WaitGroup
	for _, other := range others {
		wait.Go(func() { other.runs(false) })
	}
	wait.Wait()
	balances, err := ledger.Balances(t.Context(), account, "of p0", "of p1", "of p2")
	if err != nil {
		t.Fatal(err)
	}
	held := balances[0]
	if held.Held() > limit || held.Held() < limit-least-most || held.Reserved != r.open || held.Spent != r.spent {
		t.Errorf("of %d there are %+v; the processes say that %d are spent and %d open", limit, held, r.spent, r.open)
	}
	if balances[1].Reserved == 0 || balances[2].Spent+balances[3].Spent == 0 {
		t.Errorf("not all processes came to it: %+v", balances)
	}
}

// race collects the output of the processes.
type race struct {
	*testing.T
	mu          sync.Mutex
	spent, open int64 // spent by all; open in the process that was killed
}

// racer is a process that waits for the signal to start.
type racer struct {
	race *race
	cmd  *exec.Cmd
	gate io.Closer // its standard input
	out  io.Reader
}

func (r *race) start(cmd *exec.Cmd) *racer {
	r.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	gate, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	return &racer{r, cmd, gate, out}
}

// runs starts the process's work and returns when it has ended. If dies is set, the
// process is killed after the reservation that it does not settle.
func (p *racer) runs(dies bool) {
	if err := p.gate.Close(); err != nil {
		p.race.Error(err)
	}
	open, lines := int64(0), bufio.NewScanner(p.out)
	for n := 1; lines.Scan(); n++ {
		var word string
		var amount int64
		if _, err := fmt.Sscan(lines.Text(), &word, &amount); err != nil {
			p.race.Errorf("the process says %q", lines.Text())
		}
		if word == "may" {
			open = amount
		} else {
			open = 0
			p.race.add(amount, 0)
		}
		if dies && n == 2*killed+1 {
			_ = p.cmd.Process.Kill()
		}
	}
	p.race.add(0, open)
	if err := p.cmd.Wait(); (err != nil) != dies {
		p.race.Errorf("%s ended with %v", p.cmd.Path, err)
	}
}

func (r *race) add(spent, open int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent, r.open = r.spent+spent, r.open+open
}

// Bench measures a reservation on three accounts with its settlement, sequentially and by
// many workers at once. Each worker has an account of its own, and all share the other
// two.
func Bench(b *testing.B, ledger budget.Ledger) {
	var worker atomic.Int64
	spend := func(pb func() bool) {
		name := fmt.Sprint("w", worker.Add(1))
		spent := map[string]int64{"all": 9, "today": 9, name: 9}
		for n := 0; pb(); n++ {
			r := budget.Reservation{ID: fmt.Sprint(name, "/", n), Now: noon, Expires: noon.Add(24 * time.Hour)}
			for _, account := range []string{"all", "today", name} {
				r.Lines = append(r.Lines, budget.Line{Account: account, Limit: budget.MaxAmount, Least: 1, Most: 10})
			}
			if _, err := ledger.Reserve(b.Context(), r); err != nil {
				b.Error(err)
				return
			}
			if err := ledger.Settle(b.Context(), r.ID, spent); err != nil {
				b.Error(err)
				return
			}
		}
	}
	b.Run("one", func(b *testing.B) { spend(b.Loop) })
	b.Run("32", func(b *testing.B) {
		b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
		b.RunParallel(func(pb *testing.PB) { spend(pb.Next) })
	})
}
