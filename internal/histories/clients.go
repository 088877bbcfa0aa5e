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
	return func(yield func(history.Info, error) bool) {
		limit, n := filter.Limit, 0
		filter.Limit = 0
		for info, err := range s.Store.List(ctx, filter) {
			if err == nil && !strings.HasPrefix(info.Owner, s.Owner("")) {
				continue
			}
			if n++; !yield(info, err) || n == limit {
				return
			}
		}
	}
}
