// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Roster is the set of ensembles of one runtime. Several conversations may share a
// roster. All methods may be called concurrently. [NewRoster] makes a roster; the zero
// value is not usable.
type Roster struct {
	ensembles []*Ensemble
	byName    map[string]*Ensemble

	mu     sync.Mutex
	closed bool
	last   *Catalog      // the newest; nil before the first
	done   chan struct{} // closed with the roster
}

// NewRoster makes a roster. Nothing is connected until it is needed. It is an error if
// an ensemble is nil, has no name or has the name of another; all such errors are
// reported together.
func NewRoster(ensembles ...*Ensemble) (*Roster, error) {
	r := &Roster{byName: make(map[string]*Ensemble, len(ensembles)), done: make(chan struct{})}
	var problems []error
	for i, e := range ensembles {
		switch {
		case e == nil:
			problems = append(problems, fmt.Errorf("ensemble %d of the roster is nil", i+1))
		case e.name == "":
			problems = append(problems, fmt.Errorf("ensemble %d of the roster has no name", i+1))
		case r.byName[e.name] != nil:
			problems = append(problems, fmt.Errorf("the roster has two ensembles named %q; rename one", e.name))
		default:
			r.byName[e.name] = e
			r.ensembles = append(r.ensembles, e)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return r, nil
}

// Ensembles returns the ensembles in the order given.
func (r *Roster) Ensembles() []*Ensemble { return slices.Clone(r.ensembles) }

// Ensemble returns the ensemble with this name.
func (r *Roster) Ensemble(name string) (*Ensemble, bool) {
	e, ok := r.byName[name]
	return e, ok
}

// Connect connects all ensembles concurrently, each within its own timeout, and returns
// their joined errors.
func (r *Roster) Connect(ctx context.Context) error {
	return sideBySide(r.ensembles, func(e *Ensemble) error { return e.Connect(ctx) })
}

// Close closes all ensembles concurrently and returns their joined errors. It may be
// called again; see [Ensemble.Close].
func (r *Roster) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.done)
	}
	r.mu.Unlock()
	return sideBySide(r.ensembles, func(e *Ensemble) error { return e.Close(ctx) })
}

func (r *Roster) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// sideBySide runs do for all ensembles concurrently and joins the errors.
func sideBySide(ensembles []*Ensemble, do func(*Ensemble) error) error {
	errs := make([]error, len(ensembles))
	var all sync.WaitGroup
	for i, e := range ensembles {
		all.Go(func() { errs[i] = do(e) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Catalog returns the tools that all ensembles offer now. Ensembles that are not
// connected are connected concurrently, each within its own timeout. One that cannot be
// reached is listed in [Catalog.Away], and the others work, unless it is Required: then
// Catalog fails. An ensemble whose last attempt failed does not delay a second catalog:
// for a while after the failure it is away without a new attempt (see
// [Ensemble.Connect]); after that, Catalog starts an attempt and waits for it no longer
// than half a second, and a later Catalog uses its result.
//
// As long as nothing changes, Catalog returns the same pointer, which can serve as a
// key for data derived from the catalog.
func (r *Roster) Catalog(ctx context.Context) (*Catalog, error) {
	offers := make([]*offer, len(r.ensembles))
	away := make([]error, len(r.ensembles))
	err := r.eachOutdated(ctx, offers, away, func(i int, e *Ensemble) { offers[i], away[i] = e.offeredSoon(ctx) })
	if err != nil {
		return nil, err
	}
	var fatal []error
	for i, err := range away {
		if err != nil && r.ensembles[i].options.Required {
			fatal = append(fatal, fmt.Errorf("required: %w", err))
		}
	}
	if err := errors.Join(fatal...); err != nil && !r.isClosed() {
		return nil, err
	}
	return r.catalogOf(offers, away)
}

// eachOutdated puts the offers that are known to be up to date into offers, and calls
// update for the other ensembles, concurrently.
func (r *Roster) eachOutdated(ctx context.Context, offers []*offer, away []error, update func(i int, e *Ensemble)) error {
	var waiting sync.WaitGroup
	for i, e := range r.ensembles {
		if o, ok := e.upToDate(); ok {
			offers[i], away[i] = o, nil
			continue
		}
		waiting.Go(func() { update(i, e) })
	}
	waiting.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("catalog of tools: %w", err)
	}
	return nil
}

// catalogOf returns the catalog of these offers, and of the errors of the ensembles
// without one. It returns the last catalog if that is the same.
func (r *Roster) catalogOf(offers []*offer, away []error) (*Catalog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("roster: %w", ErrClosed)
	}
	if r.last == nil || !r.last.isOf(offers, away) {
		r.last = newCatalog(r.ensembles, offers, away)
	}
	return r.last, nil
}

// Latest is [Roster.Catalog] for the middle of a turn: it does not connect, and asks
// only connected ensembles that have said that their tools changed, each for no longer
// than 5 seconds. For the others it uses the offers of the previous catalog.
func (r *Roster) Latest(ctx context.Context) (*Catalog, error) {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if last == nil {
		return r.Catalog(ctx)
	}
	offers, away := slices.Clone(last.offers), slices.Clone(last.errs)
	err := r.eachOutdated(ctx, offers, away, func(i int, e *Ensemble) {
		if o, ok := e.relist(ctx); ok {
			offers[i], away[i] = o, nil
		}
	})
	if err != nil {
		return nil, err
	}
	return r.catalogOf(offers, away)
}
