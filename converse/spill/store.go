// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/records"
)

// Store returns a store that keeps the folder in step with another one: Delete removes
// the pieces that only the deleted conversation owns, and a conversation that is forked
// or imported owns the pieces that it links to. If store has a method Ledger, so has
// the returned store, which then may have the method Records too. Its method Unwrap
// returns store, for other methods.
func (f *Folder) Store(store history.Store) history.Store {
	s := spillStore{Store: store, folder: f}
	keeper, hasLedger := store.(ledgerKeeper)
	database, hasRecords := store.(recordKeeper)
	switch {
	case hasLedger && hasRecords:
		return struct {
			spillStore
			ledgerKeeper
			recordKeeper
		}{s, keeper, database}
	case hasLedger:
		return struct {
			spillStore
			ledgerKeeper
		}{s, keeper}
	}
	return s
}

// recordKeeper is a store that has records of other kinds too.
type recordKeeper interface{ Records() records.Table }

// ledgerKeeper is a store that has a ledger too.
type ledgerKeeper interface{ Ledger() budget.Ledger }

type spillStore struct {
	history.Store
	folder *Folder
}

// Unwrap returns the store without the folder.
func (s spillStore) Unwrap() history.Store { return s.Store }

// Append makes the conversation an owner of the pieces that the canisters name. The
// pieces of an import exist already if it comes from the same machine. If the conversation
// was deleted, Append removes the pieces that were stored for it after that.
func (s spillStore) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if _, err := s.own(conversation, s.folder.linked(canisters...)); err != nil {
		return err
	}
	err := s.Store.Append(ctx, conversation, length, canisters...)
	if _, isConflict := errors.AsType[*history.ConflictError](err); isConflict {
		if _, gone := s.Info(context.WithoutCancel(ctx), conversation); errors.Is(gone, history.ErrNotFound) {
			return errors.Join(err, s.folder.Remove(conversation))
		}
	}
	return err
}

// own makes a conversation an owner of the named files that exist, and returns the
// names that it did not own before.
func (s spillStore) own(conversation string, names []string) (fresh []string, err error) {
	names = slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(s.folder.path, name))
		return err != nil // the link leads nowhere, or elsewhere
	})
	if fresh, err = s.folder.own(conversation, names...); err != nil {
		err = fmt.Errorf("spill: the spilled results of conversation %q: %w", conversation, err)
	}
	return fresh, err
}

// Fork makes the fork an owner of the files that its canisters name. If an error leaves
// it unknown whether the fork was made, the fork stays an owner until it is deleted.
func (s spillStore) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := history.CheckID(to); err != nil {
		return err
	}
	names, err := s.forked(ctx, conversation, length)
	if err != nil {
		return err
	}
	fresh, err := s.own(to, names) // first, so that a crash leaves no link without its file
	if err != nil {
		return errors.Join(err, s.disown(to, fresh))
	}
	err = s.Store.Fork(ctx, conversation, length, to)
	if len(fresh) == 0 || !errors.Is(err, history.ErrExists) && !errors.Is(err, history.ErrNotFound) {
		return err
	}
	// An existing conversation of this name may have links to some of them.
	linked, unread := s.links(context.WithoutCancel(ctx), to, math.MaxInt)
	if unread != nil {
		return err
	}
	fresh = slices.DeleteFunc(fresh, func(name string) bool { return slices.Contains(linked, name) })
	return errors.Join(err, s.disown(to, fresh))
}

// disown removes a conversation from the owners of files.
func (s spillStore) disown(conversation string, names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, s.folder.disown(conversation, name))
	}
	_ = os.Remove(s.folder.owners(conversation)) // unless it owns others
	return err
}

// forked returns the files that the first canisters of a conversation name, if it owns
// any.
func (s spillStore) forked(ctx context.Context, conversation string, length int) (names []string, err error) {
	if marks, _ := os.ReadDir(s.folder.owners(conversation)); len(marks) == 0 {
		return nil, nil
	}
	return s.links(ctx, conversation, length)
}

// links returns the files that the first canisters of a conversation name.
func (s spillStore) links(ctx context.Context, conversation string, length int) (names []string, err error) {
	place := 0
	for c, err := range s.Read(ctx, conversation, 0) {
		if err != nil {
			return nil, err
		}
		if place++; place > length {
			break
		}
		names = append(names, s.folder.linked(c)...)
	}
	return names, nil
}

// Delete removes the conversation, and then the pieces that only it owns.
func (s spillStore) Delete(ctx context.Context, conversation string, length int) error {
	if err := s.Store.Delete(ctx, conversation, length); err != nil {
		return err
	}
	if err := s.folder.Remove(conversation); err != nil {
		return fmt.Errorf("spill: conversation %q is deleted, but its spilled results are not; delete it again: %w", conversation, err)
	}
	return nil
}
