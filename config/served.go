// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// OwnerPrefix begins the [history.Info.Owner] of conversations of served clients, as
// [Assembly.OwnerOf] creates it.
const OwnerPrefix = "served-"

// OwnerOf returns an owner name for the caller's conversations. It is derived from the
// trusted values of ctx that [Conversation].Identity names, and does not reveal them.
func (a *Assembly) OwnerOf(ctx context.Context) (string, error) {
	owner, err := agenttool.OwnerOf(ctx, a.latest().Options.Identity)
	return OwnerPrefix + owner, err
}

// ValuesOf returns the trusted values of the owner of a conversation, for a process
// without a caller. It returns an error if no identity in the configuration matches: the
// client was removed, or its trusted values have changed.
func (a *Assembly) ValuesOf(_ context.Context, info history.Info) ([]invoker.Value, error) {
	a = a.latest()
	callers := append([][]invoker.Value{nil, a.Serve.Trusted}, a.certified...)
	for _, known := range a.Serve.Tokens {
		callers = append(callers, known.Trusted)
	}
	for _, values := range callers {
		if owner, err := a.OwnerOf(invoker.WithTrusted(context.Background(), values...)); err == nil && owner == info.Owner {
			return values, nil
		}
	}
	return nil, fmt.Errorf("config: the conversation %q belongs to %q, who is no longer in the configuration", info.ID, info.Owner)
}

// OpenServed returns a function that creates the conversations of served clients. Their
// trusted values come with each turn and not from the person who runs the
// program. log stores the conversations; nil keeps them in memory.
func (a *Assembly) OpenServed(log history.Log) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		a := a.latest()
		options := *a.Options
		options.ID, options.Trusted, options.Log = id, nil, log
		return converse.New(a.Model, a.Roster, &options), nil
	}
}
