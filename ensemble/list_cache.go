// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/backoff"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// listCache caches one list of a library: the result of a listing over the current
// connection, until the connection reports a change.
type listCache[T any] struct {
	ensemble *Ensemble
	kind     itemKind[T]
	listing  chan struct{} // holds a value while a listing is in progress
	changed  atomic.Bool   // since it was listed

	// The rest is guarded by Ensemble.mu.

	session *session // that was used for the listing; nil before the first
	at      time.Time
	items   items[T]
	tried   *session // whose last listing failed
	failed  backoff.Backoff
}

// items are a list of a library, and the items of it that are not offered.
type items[T any] struct {
	found []T
	aside []Aside
}

// itemKind describes resources, templates or prompts.
type itemKind[T any] struct {
	plural string // such as "resources"
	list   func(Library, context.Context) ([]T, error)
	texts  func(*T) itemTexts
}

// itemTexts point to the texts of an item.
type itemTexts struct {
	key                   *string // identifies the item within its list
	ensemble, description *string
	names                 []*string // besides the key, of one line
}

func newListCache[T any](e *Ensemble, kind itemKind[T]) *listCache[T] {
	return &listCache[T]{ensemble: e, kind: kind, listing: make(chan struct{}, 1)}
}

// list returns the cached list, listing first if needed. Concurrent callers share one
// listing. The slices must not be modified.
func (c *listCache[T]) list(ctx context.Context) (items[T], error) {
	for attempt := 1; ; attempt++ {
		if found, ok := c.valid(); ok {
			return found, nil
		}
		s, err := c.ensemble.ready(ctx, false, forList)
		if err != nil {
			return items[T]{}, err
		}
		found, err := c.listOver(ctx, s)
		if err == nil || attempt == attempts || ctx.Err() != nil || !s.endedByLoss() {
			return found, err
		}
	}
}

// valid returns the cached list if it is known to be up to date, or if the ensemble is
// asleep.
func (c *listCache[T]) valid() (items[T], bool) {
	e := c.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &e.supervisor
	v.noticeLoss()
	current := v.current
	if current == nil && v.asleep {
		current = v.newest
	}
	ok := current != nil && c.session == current && !c.changed.Load() && (v.current == nil || !e.options.isOld(c.at))
	return c.items, ok
}

// listOver lists over one connection, unless a concurrent caller has just done so.
func (c *listCache[T]) listOver(ctx context.Context, s *session) (items[T], error) {
	select {
	case c.listing <- struct{}{}:
		defer func() { <-c.listing }()
	case <-ctx.Done():
		return items[T]{}, fmt.Errorf("ensemble %q: waiting for the list of %s: %w", c.ensemble.name, c.kind.plural, ctx.Err())
	}
	if found, ok := c.valid(); ok {
		return found, nil
	}
	library, ok := s.connection.(Library)
	if !ok {
		c.store(s, items[T]{})
		return items[T]{}, nil
	}
	if found, err, ok := c.lastFailure(s); ok {
		return found, err
	}
	c.changed.Store(false) // later changes count
	found, err := c.fetch(ctx, s, library)
	if err != nil {
		c.changed.Store(true)
		if ctx.Err() != nil {
			return items[T]{}, fmt.Errorf("ensemble %q: listing the %s: %w", c.ensemble.name, c.kind.plural, ctx.Err())
		}
		return c.fail(s, fmt.Errorf("ensemble %q: listing the %s: %w", c.ensemble.name, c.kind.plural, err))
	}
	selected := c.selectItems(found)
	c.store(s, selected)
	return selected, nil
}

// fetch queries the library, within the time limit of a listing. From the caller's
// context it keeps only the end and the span, because the list is shared.
func (c *listCache[T]) fetch(ctx context.Context, s *session, library Library) ([]T, error) {
	limit := c.ensemble.options.ConnectTimeout
	bounded, cancel := context.WithTimeout(telemetry.Within(s.alive, ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	j, err := s.begin("listing its "+c.kind.plural, cancel)
	if err != nil {
		return nil, err
	}
	found, err := run(bounded, j, func(ctx context.Context) ([]T, error) { return c.kind.list(library, ctx) })
	switch ended := j.endedBy(); {
	case err == nil:
		s.touch()
	case ended != nil:
		err = ended
	case bounded.Err() == context.DeadlineExceeded:
		err = fmt.Errorf("%w: %w", &limitError{"no list", limit}, err)
	}
	return found, err
}

// store stores a list in the cache.
func (c *listCache[T]) store(s *session, list items[T]) {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	c.session, c.at, c.items = s, time.Now(), list
	c.tried, c.failed = nil, backoff.Backoff{}
}

// fail records that listing failed. The old list stays valid if it came over the same
// connection.
func (c *listCache[T]) fail(s *session, err error) (items[T], error) {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	if c.tried != s {
		c.tried, c.failed = s, backoff.Backoff{}
	}
	c.failed.Add(err)
	c.ensemble.log.Warn("a list of resources or prompts could not be fetched", logevent.LibraryFailed, zap.String("list", c.kind.plural), zap.Error(err))
	if c.session == s {
		return c.items, nil
	}
	return items[T]{}, err
}

// lastFailure returns the result of an attempt that failed a moment ago.
func (c *listCache[T]) lastFailure(s *session) (items[T], error, bool) {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	switch {
	case c.tried != s || c.failed.Due():
		return items[T]{}, nil, false
	case c.session == s:
		return c.items, nil, true
	}
	return items[T]{}, c.failed.Err, true
}

// selectItems sets the items aside that cannot be offered.
func (c *listCache[T]) selectItems(found []T) items[T] {
	var all items[T]
	name, most := c.ensemble.name, c.ensemble.options.MaxResources
	taken := make(map[string]bool, len(found))
	for _, one := range found {
		texts := c.kind.texts(&one)
		given := *texts.key
		*texts.ensemble = name
		*texts.description, _ = display.Without(*texts.description, display.IsInvisible)
		for _, line := range append(texts.names, texts.key) {
			*line, _ = display.Without(*line, isInvisibleInName)
		}
		key := *texts.key
		reason := ""
		switch {
		case key == "":
			reason = "it has no name"
		case taken[key]:
			reason = fmt.Sprintf("the ensemble lists it twice in its %s", c.kind.plural)
		case key != given:
			reason = "its name has invisible characters"
		case len(all.found) >= most:
			all.aside = append(all.aside, Aside{name, key, fmt.Sprintf("the ensemble has more than %d %s, which is the limit; this one and those after it are left out", most, c.kind.plural)})
			return all
		}
		if reason == "" {
			reason = c.ensemble.options.excluded(key)
		}
		if reason != "" {
			all.aside = append(all.aside, Aside{name, key, reason})
			continue
		}
		taken[key] = true
		all.found = append(all.found, one)
	}
	return all
}

// libraryLists are the cached lists of an ensemble's library.
type libraryLists struct {
	resources *listCache[Resource]
	templates *listCache[Template]
	prompts   *listCache[Prompt]
}

func newLibraryLists(e *Ensemble) libraryLists {
	return libraryLists{
		newListCache(e, itemKind[Resource]{"resources", Library.Resources, func(r *Resource) itemTexts {
			return itemTexts{&r.URI, &r.Ensemble, &r.Description, []*string{&r.Name, &r.Title}}
		}}),
		newListCache(e, itemKind[Template]{"templates", Library.Templates, func(t *Template) itemTexts {
			return itemTexts{&t.URI, &t.Ensemble, &t.Description, []*string{&t.Name, &t.Title}}
		}}),
		newListCache(e, itemKind[Prompt]{"prompts", Library.Prompts, func(p *Prompt) itemTexts {
			return itemTexts{&p.Name, &p.Ensemble, &p.Description, []*string{&p.Title}}
		}}),
	}
}

// outdate makes the lists outdated and forgets failed listings; Ensemble.mu is held.
func (l *libraryLists) outdate() {
	l.resources.outdate()
	l.templates.outdate()
	l.prompts.outdate()
}

func (c *listCache[T]) outdate() {
	c.changed.Store(true)
	c.tried = nil
}
