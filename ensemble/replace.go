// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"slices"
)

// Replace makes these the ensembles of the roster. An ensemble that stays is not touched:
// its connection, its calls and its subscriptions continue. One that is new should be
// connected before ([Ensemble.Connect]), so that its tools are there at once.
//
// An ensemble that is not among the new ones is retired. It takes no new calls: they go
// to the new ensemble with its name, also calls of tools in older catalogs, and so do its
// subscriptions; without such an ensemble calls fail with TOOL_NOT_FOUND. Its running
// calls and requests finish, within its Options.CallLimit, extended while they are held,
// and then it is closed. Replace does not wait for that; [Roster.Close] does.
//
// [Roster.Watch] reports each ensemble that was added or removed. The errors are the same
// as from [NewRoster], and [ErrClosed], also for an ensemble that was retired before and
// cannot come back; with an error, nothing has changed.
func (r *Roster) Replace(ensembles ...*Ensemble) error {
	m, err := newMembers(ensembles)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed() {
		return fmt.Errorf("roster: %w", ErrClosed)
	}
	before := r.members
	for _, e := range m.ensembles {
		if before.byName[e.name] != e && e.retired().begun {
			return fmt.Errorf("roster: the ensemble %q was removed or replaced before; make a new one: %w", e.name, ErrClosed)
		}
	}
	if slices.Equal(before.ensembles, m.ensembles) {
		return nil
	}
	r.members = m
	for _, e := range m.ensembles {
		if before.byName[e.name] != e {
			r.report(e)
		}
	}
	for _, e := range before.ensembles {
		if next := m.byName[e.name]; next != e {
			r.retire(e, next)
		}
	}
	return nil
}

// report connects the watchers to a new ensemble, and tells them of it; r.mu is held.
func (r *Roster) report(e *Ensemble) {
	for w := range r.watchers {
		e.news.add(w)
		w.addChange(e.name)
	}
}

// retire retires an ensemble on a goroutine, in favour of next, which may be nil; r.mu is
// held.
func (r *Roster) retire(e, next *Ensemble) {
	e.succeed(next)
	for w := range r.watchers {
		e.news.remove(w)
		w.addChange(e.name)
	}
	r.retiring[e] = struct{}{}
	if next != nil {
		r.retired.Go(next.resubscribe) // a server that does not answer it does not keep e alive
	}
	r.retired.Go(func() {
		e.closeWhenDone(r.life)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.retiring, e)
	})
}

// retirement is the state of an ensemble that left its roster. Ensemble.mu
// guards it.
type retirement struct {
	begun bool
	next  *Ensemble // takes its calls and subscriptions; may be nil
}

// isRemoval reports whether the ensemble was retired and nothing has replaced it.
func (r retirement) isRemoval() bool { return r.begun && r.next == nil }

// succeed retires the ensemble in favour of next, which may be nil.
func (e *Ensemble) succeed(next *Ensemble) {
	e.unobserve()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retirement = retirement{begun: true, next: next}
	e.supervisor.stopRetry()
	if next != nil {
		e.moveSubscriptions(next)
	}
}

// successor returns the ensemble that has replaced e, or nil.
func (e *Ensemble) successor() *Ensemble { return e.retired().next }

// retired returns the state of an ensemble that may have left its roster.
func (e *Ensemble) retired() retirement {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.retirement
}

// closeWhenDone closes a retired ensemble when its calls and requests have ended, or when
// ctx ends. Options.CallLimit ends each of them, but not while it is held.
func (e *Ensemble) closeWhenDone(ctx context.Context) {
	select {
	case <-e.stats.whenUnused():
	case <-ctx.Done():
	}
	_ = e.Close(context.WithoutCancel(ctx)) // CloseTimeout bounds it; failures are logged
}

// Current returns the tool of the ensemble that has replaced the tool's ensemble
// ([Roster.Replace]), with the definition that it lists now. It is t if none has, or if that
// one does not list such a tool.
func (t *Tool) Current() *Tool {
	next := t.current()
	next.ensemble.mu.Lock()
	defer next.ensemble.mu.Unlock()
	if slices.Contains(next.ensemble.tools.offer.tools, next) {
		return next
	}
	return t
}

// current returns the tool of the ensemble that has replaced the tool's ensemble, or t if
// none has. A bound tool stays the same.
func (t *Tool) current() *Tool {
	for next := t.ensemble.successor(); next != nil && !t.bound; next = t.ensemble.successor() {
		t = next.likeTool(t)
	}
	return t
}

// likeTool returns the tool of e with the name of t. If e does not offer it, that is a
// tool whose calls find out.
func (e *Ensemble) likeTool(t *Tool) *Tool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, offered := range e.tools.offer.tools {
		if offered.definition.Name == t.definition.Name {
			return offered
		}
	}
	return &Tool{name: t.name, ensemble: e, definition: t.definition}
}
