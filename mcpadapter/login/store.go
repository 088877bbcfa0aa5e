// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/loginkey"
)

// Store keeps logins. Its methods may be called concurrently. [NewFiles] and [NewMemory]
// return one. If a store has a method Get(ctx, key) that returns one login, nil without one,
// each running client calls it instead of List every half a minute.
type Store interface {
	// List returns all logins, in any order. If some cannot be read, it returns the
	// others and an error.
	List(ctx context.Context) ([]*Login, error)
	// Update calls change with the login of the key, nil if there is none, and stores the
	// login that it returns; nil removes it. No other Update of the same key, in this
	// process or another one that uses the store, runs at the same time. An error of
	// change is returned as it is, and nothing is stored then. Update stores the result
	// even if ctx has ended in the meantime.
	Update(ctx context.Context, key Key, change func(*Login) (*Login, error)) error
}

// Memory is a store that ends with the process.
type Memory struct {
	mu     sync.Mutex
	logins map[Key]*Login
	busy   map[Key]chan struct{} // closed when the update ends
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{logins: map[Key]*Login{}, busy: map[Key]chan struct{}{}} }

// List implements [Store].
func (m *Memory) List(context.Context) ([]*Login, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*Login
	for _, l := range m.logins {
		all = append(all, l)
	}
	return all, nil
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, key Key, change func(*Login) (*Login, error)) error {
	m.mu.Lock()
	for m.busy[key] != nil {
		busy := m.busy[key]
		m.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
		m.mu.Lock()
	}
	done := make(chan struct{})
	m.busy[key] = done
	before := m.logins[key]
	m.mu.Unlock()

	stored := false
	var after *Login
	defer func() { // also if change panics
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.busy, key)
		close(done)
		switch {
		case !stored:
		case after == nil:
			delete(m.logins, key)
		default:
			m.logins[key] = after
		}
	}()
	after, err := change(before)
	stored = err == nil
	return err
}

// isDamaged reports whether an error of a store says that a login cannot be decrypted.
func isDamaged(err error) bool {
	return errors.Is(err, loginkey.ErrSealed) || errors.Is(err, loginkey.ErrForeign)
}

// stillStored returns the stored login of a key, without a look at others; nil without one, or if the
// store can only list all of them.
func stillStored(ctx context.Context, store Store, key Key) (*Login, error) {
	if one, ok := store.(interface {
		Get(ctx context.Context, key Key) (*Login, error)
	}); ok {
		return one.Get(ctx, key)
	}
	return nil, nil
}

// find returns the newest login for a resource and an identity, with any issuer if issuer
// is empty; nil without one.
func find(ctx context.Context, store Store, key Key) (*Login, error) {
	all, err := store.List(ctx)
	all = slices.DeleteFunc(all, func(l *Login) bool {
		return l.Resource != key.Resource || l.Identity != key.Identity || key.Issuer != "" && !sameIssuer(l.Issuer, key.Issuer)
	})
	if len(all) == 0 {
		return nil, err
	}
	return slices.MaxFunc(all, func(a, b *Login) int { return a.Since.Compare(b.Since) }), nil
}
