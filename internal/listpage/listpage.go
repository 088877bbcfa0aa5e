// SPDX-License-Identifier: Apache-2.0

// Package listpage reads the list of conversations of a store in pages, so that a page reads
// about as much as it shows.
package listpage

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/converse/history"
)

// Place is a place in the order of lists: after a conversation. Zero is the beginning.
type Place struct {
	Changed time.Time
	ID      string
}

// After returns the place after a conversation.
func After(info history.Info) Place { return Place{info.Changed, info.ID} }

// IsZero reports whether the place is the beginning.
func (at Place) IsZero() bool { return at.Changed.IsZero() }

// String returns the text that [Parse] reads. It needs no escapes in addresses.
func (at Place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.Changed.UTC().Format(time.RFC3339Nano) + " " + at.ID))
}

// Parse reads the text of a place.
func Parse(text string) (at Place, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	changed, id, hasID := strings.Cut(string(decoded), " ")
	if err == nil && hasID {
		at.ID = id
		at.Changed, err = time.Parse(time.RFC3339Nano, changed)
	}
	if err != nil || !hasID {
		return Place{}, errors.New("listpage: this is not the text of a place")
	}
	return at, nil
}

// precedes reports whether a conversation comes after the place.
func (at Place) precedes(info history.Info) bool {
	return at.IsZero() || history.Info{ID: at.ID, Changed: at.Changed}.Compare(info) < 0
}

// Read returns at most n conversations after a place, if shows is true for them; nil means
// all. isLast is true if there are no others. The error is about conversations that cannot be
// read and that shows is true for, as far as they are known, or about the whole list. Limit
// and Until of the filter are ignored.
func Read(ctx context.Context, store history.Store, filter history.Filter, at Place, n int, shows func(history.Info) bool) (list []history.Info, isLast bool, err error) {
	filter.Until = until(at)
	for filter.Limit = n + 2; ; filter.Limit *= 4 {
		all, end := 0, at
		list, err = nil, nil
		for info, failed := range store.List(ctx, filter) {
			if failed != nil {
				if shows == nil || info.ID == "" || shows(info) {
					err = errors.Join(err, failed)
				}
				continue
			}
			if all++; len(list) > n || !at.precedes(info) {
				continue
			}
			if end = After(info); shows == nil || shows(info) {
				list = append(list, info)
			}
		}
		if len(list) > n { // the errors come last
			return list[:n], false, err
		}
		if all < filter.Limit {
			isLast = err != nil || filter.Text != "" || !hasMore(ctx, store, filter, end)
			if len(list) > 0 || isLast {
				return list, isLast, err
			}
			at, filter.Limit = end, n+2 // the others began meanwhile, or are hidden
			filter.Until = until(at)
		}
	}
}

// until returns the bound of a list that begins at a place. It is exclusive, and several can have
// changed at the same time.
func until(at Place) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.Changed.Add(1)
}

// hasMore reports whether a list that was shorter than its limit goes on after its end: the store may
// have left out conversations that were deleted while it listed them. A list with words is not asked
// for twice: it takes long, and the limit is that of the conversations that have them.
func hasMore(ctx context.Context, store history.Store, filter history.Filter, end Place) bool {
	filter.Until = until(end)
	for info, err := range store.List(ctx, filter) {
		if err == nil && end.precedes(info) {
			return true
		}
	}
	return false
}
