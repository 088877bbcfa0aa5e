// SPDX-License-Identifier: Apache-2.0

// Package loginrecords stores logins, encrypted, in the records of a database that several
// machines share.
package loginrecords

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/records"
	"github.com/consort-go/consort/mcpadapter/login"
)

// Store is a [login.Store] in a table.
type Store struct {
	open  func(context.Context) (records.Table, error)
	key   func() ([]byte, error)
	scope string // begins the names of its logins

	mu        sync.Mutex
	isChecked bool // the key is that of the other machines
}

var _ login.Store = (*Store)(nil)

// New returns the store in the table that open returns, which is called at each use. key returns
// the 32 bytes that encrypt the logins, which must be the same in each process that uses the
// table. Both may be called concurrently. Stores with different scopes do not see each other's
// logins; an empty scope is one of them.
func New(open func(context.Context) (records.Table, error), key func() ([]byte, error), scope string) *Store {
	s := &Store{open: open, key: key}
	if scope != "" {
		s.scope = loginkey.Name(scope) + scopeEnd
	}
	return s
}

// scopeEnd ends the scope in the name of a record. Names without a scope do not have it.
const scopeEnd = "-"

// keyRecord is the record by which a process notices that it has another key; it has a
// constant text.
const keyRecord, keyText = "key", "the key of the logins"

// errKey says that the processes have different keys.
var errKey = errors.New("the logins in the conversation store are encrypted with another key than this process has: give each process the same CONSORT_LOGIN_KEY, or, with [logins] key, the same key")

// Check returns an error if the table cannot be used, or if its logins are encrypted with
// another key.
func (s *Store) Check(ctx context.Context) error {
	_, _, err := s.use(ctx)
	return err
}

// use returns the table and the key, after a check of the key.
func (s *Store) use(ctx context.Context) (records.Table, []byte, error) {
	table, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	key, err := s.key()
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isChecked {
		return table, key, nil
	}
	err = table.Update(ctx, keyRecord, func(before []byte) ([]byte, error) {
		if before == nil {
			return loginkey.Seal(key, keyRecord, []byte(keyText))
		}
		if _, err := loginkey.Open(key, keyRecord, before); err != nil {
			return nil, errKey
		}
		return before, nil
	})
	if err != nil {
		return nil, nil, err
	}
	s.isChecked = true
	return table, key, nil
}

// List implements [login.Store].
func (s *Store) List(ctx context.Context) ([]*login.Login, error) {
	table, key, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := table.All(ctx)
	var all []*login.Login
	for name, sealed := range stored {
		if rest, ours := strings.CutPrefix(name, s.scope); !ours || name == keyRecord || strings.Contains(rest, scopeEnd) {
			continue
		}
		l, wrong := read(key, name, sealed)
		err = errors.Join(err, wrong)
		if l != nil {
			all = append(all, l)
		}
	}
	return all, err
}

// Get returns the login of a key; nil without one.
func (s *Store) Get(ctx context.Context, of login.Key) (*login.Login, error) {
	table, key, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	name := s.name(of)
	sealed, err := table.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return read(key, name, sealed)
}

// name returns the name of the record of a login.
func (s *Store) name(of login.Key) string {
	return s.scope + loginkey.Name(of.Issuer, of.Resource, of.Identity)
}

// Update implements [login.Store].
func (s *Store) Update(ctx context.Context, of login.Key, change func(*login.Login) (*login.Login, error)) error {
	table, key, err := s.use(ctx)
	if err != nil {
		return err
	}
	name := s.name(of)
	return table.Update(ctx, name, func(sealed []byte) ([]byte, error) {
		before, _ := read(key, name, sealed) // what cannot be read is replaced
		after, err := change(before)
		if after == nil || err != nil {
			return nil, err
		}
		text, err := json.Marshal(after)
		if err != nil {
			return nil, err
		}
		return loginkey.Seal(key, name, text)
	})
}

// read returns the login of a record, nil without one.
func read(key []byte, name string, sealed []byte) (*login.Login, error) {
	if sealed == nil {
		return nil, nil
	}
	l := new(login.Login)
	text, err := loginkey.Open(key, name, sealed)
	if err == nil && json.Unmarshal(text, l) != nil {
		err = loginkey.ErrSealed
	}
	if err != nil {
		return nil, fmt.Errorf("the login %s in the conversation store cannot be read: %w; log in again", name, err)
	}
	return l, nil
}
