// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// OwnerPrefix begins the [history.Info.Owner] of the conversations of those who
// are served, as [Assembly.OwnerOf] makes it.
const OwnerPrefix = "served-"

// OwnerOf returns what stands for whoever calls, by the trusted values of ctx that
// [Conversation].Identity names, and does not tell them: whose a conversation is.
func (a *Assembly) OwnerOf(ctx context.Context) (string, error) {
	owner, err := converse.OwnerOf(ctx, a.Options.Identity)
	return OwnerPrefix + owner, err
}

// ValuesOf returns the trusted values of whoever a conversation belongs to, for a
// process that nobody has called. An error says that the configuration knows nobody
// of that identity: a client is gone from it, or what is trusted of it is another.
func (a *Assembly) ValuesOf(_ context.Context, info history.Info) ([]invoker.Value, error) {
	callers := append([][]invoker.Value{nil, a.Serve.Trusted}, a.certified...)
	for _, known := range a.Serve.Tokens {
		callers = append(callers, known.Trusted)
	}
	for _, values := range callers {
		if owner, err := a.OwnerOf(invoker.WithTrusted(context.Background(), values...)); err == nil && owner == info.Owner {
			return values, nil
		}
	}
	return nil, fmt.Errorf("config: the conversation %q belongs to %q, whom the configuration does not know any more", info.ID, info.Owner)
}

// OpenServed returns what makes the conversations of those who are served, whose
// trusted values come with each turn and are not those of whoever runs the program.
// Log keeps them; nil keeps them in memory.
func (a *Assembly) OpenServed(log history.Log) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		options := *a.Options
		options.ID, options.Trusted, options.Log = id, nil, log
		return converse.New(a.Model, a.Roster, &options), nil
	}
}
