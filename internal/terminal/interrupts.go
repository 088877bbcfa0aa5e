// SPDX-License-Identifier: Apache-2.0

package terminal

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

// Interrupts receives the interrupts of the process, except while another program has the
// terminal, which sends them to this process, too.
type Interrupts struct {
	// Received holds those that have not been handled yet.
	Received chan os.Signal

	mu      sync.Mutex
	lent    int // programs that have the terminal, or had it within lateInterrupt
	stopped bool
}

// NewInterrupts returns interrupts that are received until Stop.
func NewInterrupts() *Interrupts {
	i := &Interrupts{Received: make(chan os.Signal, 4)}
	signal.Notify(i.Received, os.Interrupt)
	return i
}

// Stop makes the next interrupt end the process.
func (i *Interrupts) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	signal.Stop(i.Received)
}

// Add adds an interrupt that was typed as a key.
func (i *Interrupts) Add() {
	select {
	case i.Received <- os.Interrupt:
	default: // earlier ones are waiting
	}
}

// Lend leaves interrupts to the program that gets the terminal. The caller must call end
// when that program has ended.
func (i *Interrupts) Lend() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lent++
	theirs := make(chan os.Signal, 1) // without it, the signal would end this process
	signal.Notify(theirs, os.Interrupt)
	signal.Stop(i.Received)
	return func() {
		time.AfterFunc(lateInterrupt, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.lent--; i.lent == 0 && !i.stopped {
				signal.Notify(i.Received, os.Interrupt)
			}
			signal.Stop(theirs)
		})
	}
}
