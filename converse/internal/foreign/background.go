// SPDX-License-Identifier: Apache-2.0

// Package foreign calls functions of the program: a panic becomes an error, and a
// function that does not return in time is left behind on its own goroutine.
package foreign

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/lifetime"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Patience is how long a function of the program may take to return after the context
// of the work has ended. It is then left behind on its own goroutine.
const Patience = 10 * time.Second

// Background tracks the functions of the program that run on their own goroutines.
type Background struct {
	mu      sync.Mutex
	running map[string]int // by name
	changed chan struct{}  // closed when one returns; nil if nothing waits
}

// Run calls a function of the program on its own goroutine. The channel is closed when
// it has returned; after that the error may be read, which is a panic or nil.
func (b *Background) Run(what string, do func()) (done <-chan struct{}, failure *error) {
	b.mu.Lock()
	if b.running == nil {
		b.running = map[string]int{}
	}
	b.running[what]++
	b.mu.Unlock()
	ended, failed := make(chan struct{}), new(error)
	go func() {
		returned := false
		defer func() {
			if !returned {
				*failed = Crashed(what, recover())
			}
			b.ended(what)
			close(ended)
		}()
		do()
		returned = true
	}()
	return ended, failed
}

func (b *Background) ended(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[what]--; b.running[what] == 0 {
		delete(b.running, what)
	}
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Wait waits until no function runs. When ctx ends first, the error names the functions
// that still run.
func (b *Background) Wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if len(b.running) == 0 {
			b.mu.Unlock()
			return nil
		}
		names := strings.Join(slices.Sorted(maps.Keys(b.running)), ", ")
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		if err := Wait(ctx, changed); err != nil {
			return fmt.Errorf("converse: closing: these functions have not returned: %s: %w", names, err)
		}
	}
}

// LeftError reports that a function of the program was left behind.
type LeftError struct {
	What string
	Done <-chan struct{} // closed when it returns after all; may be nil
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("converse: %s had not returned %v after the work ended; it keeps running in the background", e.What, Patience)
}

// Within calls a function of the program and waits for it, until Patience has passed
// after the end of ctx: the error is then a [*LeftError]. A panic is returned as an
// error.
func Within[T any](ctx context.Context, b *Background, what string, call func() (T, error)) (T, error) {
	var outcome struct {
		value T
		err   error
	}
	done, failed := b.Run(what, func() { outcome.value, outcome.err = call() })
	if !Awaited(ctx, done) {
		var none T
		return none, &LeftError{what, done}
	}
	if *failed != nil {
		return outcome.value, *failed
	}
	return outcome.value, contain.Error(outcome.err)
}

// Awaited waits for a running function, and reports whether it returned in time.
func Awaited(ctx context.Context, done <-chan struct{}) bool {
	select { // ctx may have ended too
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Wait waits until done is closed, or ctx ends.
func Wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leftovers names the functions that a piece of work has left behind.
type Leftovers struct {
	mu    sync.Mutex
	names []string
}

// Leave adds a function.
func (l *Leftovers) Leave(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.names, what) {
		l.names = append(l.names, what)
	}
}

// Explain adds the functions that were left behind to an error of the work.
func (l *Leftovers) Explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) == 0 || err == nil {
		return err
	}
	return fmt.Errorf("%w (still running in the background %v later: %s)", err, Patience, strings.Join(l.names, ", "))
}

// During returns the context of a request that a tool makes through ctx during its call. Ctx may
// be the context of a connection, which knows nothing of the call: the result also has the
// values of the call, and its trusted values come first. It ends with ctx or with the call.
func During(ctx, call context.Context) (context.Context, context.CancelFunc) {
	ctx = lifetime.Joined(telemetry.Within(ctx, call), call)
	ctx, cancel := context.WithCancelCause(invoker.WithTrusted(ctx, invoker.TrustedFrom(call)...))
	if call.Err() != nil {
		cancel(context.Cause(call)) // at once: AfterFunc takes its time
	}
	stop := context.AfterFunc(call, func() { cancel(context.Cause(call)) })
	return ctx, func() { stop(); cancel(nil) }
}
