// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Roster is the set of ensembles of one runtime. Several conversations may share a
// roster. All methods may be called concurrently. [NewRoster] makes a roster; the zero
// value is not usable.
type Roster struct {
	life context.Context // ends with the roster
	end  context.CancelFunc

	mu       sync.Mutex
	members  *members // never changes itself; Replace sets another
	last     *Catalog // the newest; nil before the first
	watchers map[*watcher]struct{}
	retiring map[*Ensemble]struct{} // no longer members, and not closed yet
	retired  sync.WaitGroup         // the goroutines that close them
}

// members are the ensembles of a roster from one call of Replace to the next.
type members struct {
	ensembles []*Ensemble
	byName    map[string]*Ensemble
}

// NewRoster makes a roster. Nothing is connected until it is needed. It is an error if
// an ensemble is nil, has no name or has the name of another; all such errors are
// reported together.
func NewRoster(ensembles ...*Ensemble) (*Roster, error) {
	m, err := newMembers(ensembles)
	if err != nil {
		return nil, err
	}
	r := &Roster{members: m, watchers: make(map[*watcher]struct{}), retiring: make(map[*Ensemble]struct{})}
	r.life, r.end = context.WithCancel(context.Background())
	return r, nil
}

func newMembers(ensembles []*Ensemble) (*members, error) {
	m := &members{byName: make(map[string]*Ensemble, len(ensembles))}
	var problems []error
	for i, e := range ensembles {
		switch {
		case e == nil:
			problems = append(problems, fmt.Errorf("ensemble %d of the roster is nil", i+1))
		case e.name == "":
			problems = append(problems, fmt.Errorf("ensemble %d of the roster has no name", i+1))
		case m.byName[e.name] != nil:
			problems = append(problems, fmt.Errorf("the roster has two ensembles named %q; rename one", e.name))
		default:
			m.byName[e.name] = e
			m.ensembles = append(m.ensembles, e)
		}
	}
	return m, errors.Join(problems...)
}

// now returns the current members.
func (r *Roster) now() *members {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// Ensembles returns the ensembles in the order given.
func (r *Roster) Ensembles() []*Ensemble { return slices.Clone(r.now().ensembles) }

// Ensemble returns the ensemble with this name.
func (r *Roster) Ensemble(name string) (*Ensemble, bool) {
	e, ok := r.now().byName[name]
	return e, ok
}

// Connect connects all ensembles concurrently, each within its own timeout, and returns
// their joined errors.
func (r *Roster) Connect(ctx context.Context) error {
	return sideBySide(r.now().ensembles, func(e *Ensemble) error { return e.Connect(ctx) })
}

// Close closes all ensembles concurrently and returns their joined errors. It may be
// called again; see [Ensemble.Close].
func (r *Roster) Close(ctx context.Context) error {
	r.mu.Lock()
	r.end()
	ensembles := slices.AppendSeq(slices.Clone(r.members.ensembles), maps.Keys(r.retiring))
	r.mu.Unlock()
	err := sideBySide(ensembles, func(e *Ensemble) error { return e.Close(ctx) })
	if err == nil || ctx.Err() == nil { // otherwise one that did not close in time may be retired
		r.retired.Wait()
	}
	return err
}

func (r *Roster) isClosed() bool { return r.life.Err() != nil }

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
// Catalog fails. Its other errors are that ctx has ended, and [ErrClosed]. An ensemble whose last attempt failed does not delay a second catalog:
// for a while after the failure it is away without a new attempt (see
// [Ensemble.Connect]); after that, Catalog starts an attempt and waits for it no longer
// than half a second, unless the ensemble is Required, and a later Catalog uses its result.
//
// As long as nothing changes, Catalog returns the same pointer, which can serve as a
// key for data derived from the catalog.
func (r *Roster) Catalog(ctx context.Context) (*Catalog, error) {
	for {
		m := r.now()
		offers := make([]*offer, len(m.ensembles))
		away := make([]error, len(m.ensembles))
		err := m.eachOutdated(ctx, offers, away, func(i int, e *Ensemble) { offers[i], away[i] = e.offeredSoon(ctx) })
		if err != nil {
			return nil, err
		}
		if r.now() != m { // replaced in the meantime
			continue
		}
		var fatal []error
		for i, err := range away {
			if err != nil && m.ensembles[i].options.Required {
				fatal = append(fatal, fmt.Errorf("required: %w", err))
			}
		}
		if err := errors.Join(fatal...); err != nil && !r.isClosed() {
			return nil, err
		}
		return r.catalogOf(m, offers, away)
	}
}

// eachOutdated puts the offers that are known to be up to date into offers, and calls
// update for the other ensembles, concurrently.
func (m *members) eachOutdated(ctx context.Context, offers []*offer, away []error, update func(i int, e *Ensemble)) error {
	var outdated []int
	for i, e := range m.ensembles {
		if o, ok := e.upToDate(); ok {
			offers[i], away[i] = o, nil
		} else {
			outdated = append(outdated, i)
		}
	}
	if len(outdated) > 0 {
		var waiting sync.WaitGroup
		for _, i := range outdated {
			waiting.Go(func() { update(i, m.ensembles[i]) })
		}
		waiting.Wait()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("catalog of tools: %w", err)
	}
	return nil
}

// catalogOf returns the catalog of these offers, and of the errors of the ensembles
// without one. It returns the last catalog if that is the same.
func (r *Roster) catalogOf(m *members, offers []*offer, away []error) (*Catalog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isClosed():
		return nil, fmt.Errorf("roster: %w", ErrClosed)
	case r.last != nil && r.last.isOf(m, offers, away):
		return r.last, nil
	}
	made := newCatalog(m, offers, away)
	if r.members == m {
		r.last = made
	}
	return made, nil
}

// Latest is [Roster.Catalog] for the middle of a turn. It connects only if it makes the
// first catalog. It asks only connected ensembles whose list is outdated, because they
// have said that it changed or because of Options.Refresh, each for no longer than 5
// seconds. For the others it uses the offers of the previous catalog. An ensemble that
// [Roster.Replace] has added since is away until it is connected.
func (r *Roster) Latest(ctx context.Context) (*Catalog, error) {
	r.mu.Lock()
	last, m := r.last, r.members
	r.mu.Unlock()
	if last == nil {
		return r.Catalog(ctx)
	}
	offers, away := last.offersOf(m)
	err := m.eachOutdated(ctx, offers, away, func(i int, e *Ensemble) {
		if o, ok := e.relist(ctx); ok {
			offers[i], away[i] = o, nil
		}
	})
	if err != nil {
		return nil, err
	}
	return r.catalogOf(m, offers, away)
}
