// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// shelf caches one list of a library: the result of a listing over the current
// connection, until the connection reports a change.
type shelf[T any] struct {
	what    string // such as "resources"
	key     func(*T) string
	clean   func(*T) // removes invisible characters and fills in the ensemble
	ask     func(context.Context, Library) ([]T, error)
	listing chan struct{} // holds a value while a listing is in progress
	changed atomic.Bool   // since it was listed

	// The rest is guarded by Ensemble.mu.

	life     *life // over which it was listed; nil before the first listing
	at       time.Time
	listed   []T
	aside    []Aside
	tried    *life // over which listing failed last
	failures backoff
}

func newShelf[T any](what string, key func(*T) string, clean func(*T), ask func(context.Context, Library) ([]T, error)) *shelf[T] {
	return &shelf[T]{what: what, key: key, clean: clean, ask: ask, listing: make(chan struct{}, 1)}
}

// list returns the cached list, listing first if needed. Concurrent callers share one
// listing. The slices must not be modified.
func (s *shelf[T]) list(ctx context.Context, e *Ensemble) ([]T, []Aside, error) {
	for attempt := 1; ; attempt++ {
		if listed, aside, ok := s.kept(e); ok {
			return listed, aside, nil
		}
		l, err := e.ready(ctx, false)
		if err != nil {
			return nil, nil, err
		}
		listed, aside, err := s.listOver(ctx, e, l)
		if err == nil || attempt == attempts || ctx.Err() != nil || !e.endedByLoss(l) {
			return listed, aside, err
		}
	}
}

// kept returns the cached list if it is known to be up to date, or if the ensemble is
// asleep.
func (s *shelf[T]) kept(e *Ensemble) ([]T, []Aside, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noticeLoss()
	current := e.current
	if current == nil && e.asleep {
		current = e.last
	}
	ok := current != nil && s.life == current && !s.changed.Load() && (e.current == nil || !e.isOld(s.at))
	return s.listed, s.aside, ok
}

// listOver lists over one connection, unless a concurrent caller has just done so.
func (s *shelf[T]) listOver(ctx context.Context, e *Ensemble, l *life) ([]T, []Aside, error) {
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("ensemble %q: waiting for the list of %s: %w", e.name, s.what, ctx.Err())
	}
	if listed, aside, ok := s.kept(e); ok {
		return listed, aside, nil
	}
	library, ok := l.connection.(Library)
	if !ok {
		s.take(e, l, nil, nil)
		return nil, nil, nil
	}
	if listed, aside, err, ok := s.remembered(e, l); ok {
		return listed, aside, err
	}
	s.changed.Store(false) // later changes count
	found, err := s.fetch(ctx, e, l, library)
	if err != nil {
		s.changed.Store(true)
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("ensemble %q: listing the %s: %w", e.name, s.what, ctx.Err())
		}
		return s.failed(e, l, fmt.Errorf("ensemble %q: listing the %s: %w", e.name, s.what, err))
	}
	listed, aside := s.assort(e, found)
	s.take(e, l, listed, aside)
	return listed, aside, nil
}

// fetch queries the library, within the time limit of a listing. From the caller's
// context it keeps only the end and the span, because the list is shared.
func (s *shelf[T]) fetch(ctx context.Context, e *Ensemble, l *life, library Library) ([]T, error) {
	limit := e.options.ConnectTimeout
	bounded, cancel := context.WithTimeout(telemetry.Within(l.alive, ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	j := &job{name: "listing its " + s.what, life: l, cancel: cancel, done: make(chan struct{})}
	if err := e.begin(j); err != nil {
		return nil, err
	}
	found, err := run(bounded, e, j, func(ctx context.Context) ([]T, error) { return s.ask(ctx, library) })
	switch ended := e.endedBy(j); {
	case err == nil:
		l.hear()
	case ended != nil:
		err = ended
	case bounded.Err() == context.DeadlineExceeded:
		err = fmt.Errorf("%w: %w", &limitError{"no list", limit}, err)
	}
	return found, err
}

// take stores a list in the cache.
func (s *shelf[T]) take(e *Ensemble, l *life, listed []T, aside []Aside) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.life, s.at, s.listed, s.aside = l, time.Now(), listed, aside
	s.tried, s.failures = nil, backoff{}
}

// failed records that listing failed. The old list stays valid if it came over the same
// connection.
func (s *shelf[T]) failed(e *Ensemble, l *life, err error) ([]T, []Aside, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.tried != l {
		s.tried, s.failures = l, backoff{}
	}
	s.failures.failed(err)
	e.log.Warn("a list of the library could not be had", event.LibraryFailed, zap.String("list", s.what), zap.Error(err))
	if s.life == l {
		return s.listed, s.aside, nil
	}
	return nil, nil, err
}

// remembered returns the result of an attempt that failed a moment ago.
func (s *shelf[T]) remembered(e *Ensemble, l *life) ([]T, []Aside, error, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case s.tried != l || s.failures.due():
		return nil, nil, nil, false
	case s.life == l:
		return s.listed, s.aside, nil, true
	}
	return nil, nil, s.failures.err, true
}

// assort separates the items that can be offered from those that cannot.
func (s *shelf[T]) assort(e *Ensemble, found []T) ([]T, []Aside) {
	var listed []T
	var aside []Aside
	taken := make(map[string]bool, len(found))
	for _, one := range slices.Clone(found) {
		given := s.key(&one)
		s.clean(&one)
		key := s.key(&one)
		reason := ""
		switch {
		case key == "":
			reason = "it has no name"
		case taken[key]:
			reason = fmt.Sprintf("the ensemble has it twice among its %s", s.what)
		case key != given:
			reason = "its name has characters that cannot be seen"
		case len(listed) >= e.options.MaxResources:
			return listed, append(aside, Aside{e.name, key, fmt.Sprintf("the ensemble has more than %d %s, which is the limit; this one and those after it are left out", e.options.MaxResources, s.what)})
		}
		if reason != "" {
			aside = append(aside, Aside{e.name, key, reason})
			continue
		}
		taken[key] = true
		listed = append(listed, one)
	}
	return listed, aside
}

// shelves are the cached lists of an ensemble's library.
type shelves struct {
	resources *shelf[Resource]
	templates *shelf[Template]
	prompts   *shelf[Prompt]
}

// changed returns the flags that mark the lists as outdated.
func (s *shelves) changed() []*atomic.Bool {
	return []*atomic.Bool{&s.resources.changed, &s.templates.changed, &s.prompts.changed}
}

// forgive forgets that listing failed; Ensemble.mu is held.
func (s *shelves) forgive() {
	s.resources.tried, s.templates.tried, s.prompts.tried = nil, nil, nil
}

func newShelves(ensemble string) shelves {
	return shelves{
		newShelf("resources", func(r *Resource) string { return r.URI }, func(r *Resource) {
			r.Ensemble = ensemble
			cleanTexts(&r.URI, &r.Name, &r.Title, &r.Description)
		}, func(ctx context.Context, l Library) ([]Resource, error) { return l.Resources(ctx) }),
		newShelf("templates", func(t *Template) string { return t.URI }, func(t *Template) {
			t.Ensemble = ensemble
			cleanTexts(&t.URI, &t.Name, &t.Title, &t.Description)
		}, func(ctx context.Context, l Library) ([]Template, error) { return l.Templates(ctx) }),
		newShelf("prompts", func(p *Prompt) string { return p.Name }, func(p *Prompt) {
			p.Ensemble = ensemble
			cleanTexts(&p.Name, nil, &p.Title, &p.Description)
		}, func(ctx context.Context, l Library) ([]Prompt, error) { return l.Prompts(ctx) }),
	}
}

// cleanTexts removes invisible characters.
func cleanTexts(key, name, title, description *string) {
	for _, line := range []*string{key, name, title} {
		if line != nil {
			*line, _ = cleaned(*line, isInvisibleInName)
		}
	}
	*description, _ = cleaned(*description, shown.IsInvisible)
}

// heard handles the news of a connection. It is called while the source holds locks,
// and so must not lock Ensemble.mu.
func (e *Ensemble) heard(l *life, news News) {
	switch news.Kind {
	case ToolsChanged: // subscribers are notified through Connection.Changed
		l.changed.Store(true)
	case ResourcesChanged:
		e.shelves.resources.changed.Store(true)
		e.shelves.templates.changed.Store(true)
		e.news.tell(ResourcesChanged)
	case PromptsChanged:
		e.shelves.prompts.changed.Store(true)
		e.news.tell(PromptsChanged)
	case ResourceUpdated:
		e.news.updated(news.URI)
	}
}
