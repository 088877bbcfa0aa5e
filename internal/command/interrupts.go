// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/signal"
	"sync"
	"time"
)

// lateInterrupt is how long after the end of another program an interrupt of the process may
// be one that was typed there: the system passes it on to each process in its own time. On
// the screen of a chat Ctrl-C is a key meanwhile, which takes effect at once.
const lateInterrupt = time.Second

// interrupts receives the interrupts of the process, except while another program has the
// terminal, which sends them to this process, too.
type interrupts struct {
	received chan os.Signal

	mu      sync.Mutex
	lent    int // programs that have the terminal, or had it within lateInterrupt
	stopped bool
}

// newInterrupts returns interrupts that are received until stop.
func newInterrupts() *interrupts {
	i := &interrupts{received: make(chan os.Signal, 4)}
	signal.Notify(i.received, os.Interrupt)
	return i
}

// stop makes the next interrupt end the process.
func (i *interrupts) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	signal.Stop(i.received)
}

// add adds an interrupt that was typed as a key.
func (i *interrupts) add() {
	select {
	case i.received <- os.Interrupt:
	default: // earlier ones are waiting
	}
}

// lend leaves interrupts to the program that gets the terminal. The caller must call end
// when that program has ended.
func (i *interrupts) lend() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lent++
	theirs := make(chan os.Signal, 1) // without it, the signal would end this process
	signal.Notify(theirs, os.Interrupt)
	signal.Stop(i.received)
	return func() {
		time.AfterFunc(lateInterrupt, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.lent--; i.lent == 0 && !i.stopped {
				signal.Notify(i.received, os.Interrupt)
			}
			signal.Stop(theirs)
		})
	}
}
