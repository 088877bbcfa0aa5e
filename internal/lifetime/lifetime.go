// SPDX-License-Identifier: Apache-2.0

// Package lifetime has the contexts of calls: they end with their connection, and have the values
// of both.
package lifetime

import (
	"context"

	"github.com/consort-go/consort/invoker"
)

// ErrEnded is the error of a call over a connection that was closed.
var ErrEnded = invoker.Failf(invoker.Unavailable, "The connection has ended.")

// During calls f with a context that ends with alive too, the life of a connection.
func During[T any](ctx, alive context.Context, f func(context.Context) (T, error)) (T, error) {
	var none T
	switch {
	case alive.Err() != nil:
		return none, ErrEnded
	case ctx.Err() != nil:
		return none, ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	return f(ctx)
}

// Joined returns ctx with the values of another context. The values of ctx come first.
func Joined(ctx, values context.Context) context.Context { return joined{ctx, values} }

type joined struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (j joined) Value(key any) any {
	if value := j.Context.Value(key); value != nil {
		return value
	}
	return j.values.Value(key)
}
