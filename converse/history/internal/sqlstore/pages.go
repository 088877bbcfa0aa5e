// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// Extent is the state of a conversation when a loop over it, or an append to it, begins.
type Extent struct {
	ID     string
	Key    int64 // in its table
	Length int
}

// Want describes a page to read: the canisters from the position At up to To, or fewer
// if they reach that number of bytes.
type Want struct {
	Extent
	At, To, Bytes int
}

// The size of a page.
const (
	PageRows  = 500
	PageBytes = 1 << 20
)

// The first page is smaller, since many loops end after the first canister; but a short
// end of a conversation is one page.
const (
	firstRows  = 16
	firstBytes = 64 << 10
	shortEnd   = 128
)

// Read implements [history.Log.Read]. If the conversation is deleted meanwhile, the
// sequence ends with history.ErrNotFound.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return read(after,
		func() error { return s.Usable(ctx) },
		func() (Extent, error) { return s.Extent(ctx, conversation) },
		func(want Want) ([]canister.Canister, error) { return s.page(ctx, want) })
}

// Extent returns the extent of a conversation; its length is 0 if the conversation does
// not exist.
func (s *Store) Extent(ctx context.Context, conversation string) (Extent, error) {
	e := Extent{ID: conversation}
	rows := 0
	err := s.DB.Query(ctx, conversation, func(ctx context.Context, q Queryer) error {
		return q.Row(ctx, `SELECT key, length,
			coalesce((SELECT max(position) + 1 FROM @.canisters WHERE conversation = key), 0)
			FROM @.conversations WHERE id = $1`, conversation).Scan(&e.Key, &e.Length, &rows)
	})
	if notFound(err) {
		return e, nil
	}
	if err == nil && rows != e.Length {
		err = s.Corrupt(conversation, fmt.Errorf("its length is %d, but it has %d canisters", e.Length, rows), "table conversations, key %d", e.Key)
	}
	return e, err
}

// page returns the next canisters of a conversation: at least one, or an error and the
// canisters before the failure.
func (s *Store) page(ctx context.Context, want Want) ([]canister.Canister, error) {
	page, err := s.DB.Page(ctx, want)
	if !errors.Is(err, ErrGap) {
		return page, err
	}
	there := false
	err = s.DB.Query(ctx, want.ID, func(ctx context.Context, q Queryer) error {
		return q.Row(ctx, "SELECT EXISTS (SELECT 1 FROM @.conversations WHERE key = $1)", want.Key).Scan(&there)
	})
	switch {
	case err != nil:
	case there:
		err = s.Corrupt(want.ID, ErrGap, "table canisters, conversation %d, position %d", want.Key, want.At+len(page))
	default:
		err = fmt.Errorf("%w: %q was deleted during the read", history.ErrNotFound, want.ID)
	}
	return page, err
}

// Canister returns the canister of a row, if its checksum matches.
func (s *Store) Canister(want Want, r Row) (canister.Canister, error) {
	c, err := r.canister()
	if err != nil && !errors.Is(err, canister.ErrNewer) {
		err = s.Corrupt(want.ID, err, "table canisters, conversation %d, position %d", want.Key, r.Position)
	}
	return c, err
}

// read yields the canisters of a conversation except the first after ones. It holds one
// page in memory at a time, and loads the next when that is consumed. It calls usable
// before each canister. The function page returns at least one canister, or an error
// and the canisters before the failure.
func read(after int, usable func() error, extentOf func() (Extent, error), page func(Want) ([]canister.Canister, error)) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		from, err := extentOf()
		if err != nil {
			yield(nil, err)
			return
		}
		want := Want{Extent: from, At: max(after, 0), Bytes: firstBytes}
		want.To = want.At + firstRows
		if from.Length-want.At <= shortEnd {
			want.To = from.Length
		}
		for want.At < from.Length {
			canisters, failed := page(want)
			for _, c := range canisters {
				if err := usable(); err != nil {
					yield(nil, err)
					return
				}
				if !yield(c, nil) {
					return
				}
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
			want.At += len(canisters)
			want.To, want.Bytes = min(want.At+PageRows, from.Length), PageBytes
		}
	}
}
