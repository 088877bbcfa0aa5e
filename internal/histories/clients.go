// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"iter"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
)

// ClientsOnly is a store that lists only conversations of the clients being served. An
// engine must not run the others.
type ClientsOnly struct {
	history.Store
	Scope string // of the configuration, if other configurations share the store
}

// Owner converts an owner to its name in the store, and Known converts it back.
func (s ClientsOnly) Owner(known string) string {
	return config.OwnerPrefix + s.Scope + strings.TrimPrefix(known, config.OwnerPrefix)
}

// Known converts the name of an owner in the store to the owner.
func (s ClientsOnly) Known(owner string) string {
	return config.OwnerPrefix + strings.TrimPrefix(owner, s.Owner(""))
}

// Served reports whether a conversation belongs to a client of serve.
func Served(info history.Info) bool { return strings.HasPrefix(info.Owner, config.OwnerPrefix) }

// List implements [history.Store].
func (s ClientsOnly) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return ListOnly(ctx, s.Store, filter, func(info history.Info) bool { return strings.HasPrefix(info.Owner, s.Owner("")) })
}

// ListOnly lists the conversations of a store that match a filter and that keep accepts. It
// does not load all of them if the filter has a limit. An error about a conversation that keep
// does not accept is left out, unless only its ID is known.
func ListOnly(ctx context.Context, store history.Store, filter history.Filter, keep func(history.Info) bool) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		type one struct {
			info history.Info
			err  error
		}
		limit := filter.Limit
		for filter.Limit *= 2; ; filter.Limit *= 4 {
			var list []one
			all, n := 0, 0
			for info, err := range store.List(ctx, filter) {
				if err == nil && limit > 0 && n == limit {
					continue // errors follow the conversations
				}
				if keep(info) || err != nil && info.Changed.IsZero() {
					list = append(list, one{info, err})
				}
				if err != nil {
					continue
				}
				if all++; keep(info) {
					n++
				}
			}
			if limit > 0 && n < limit && all >= filter.Limit && ctx.Err() == nil {
				continue // there are more
			}
			for _, one := range list {
				if !yield(one.info, one.err) {
					return
				}
			}
			return
		}
	}
}
