// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"slices"

	"github.com/consort-go/consort/internal/lifetime"
	"github.com/consort-go/consort/invoker"
)

// Local makes an ensemble of Go functions. A call runs its function directly, with the
// limits that every ensemble has: the context of the function ends after 30 seconds
// without a progress report, after 10 minutes in any case, and when the ensemble is closed.
func Local(name string, invokers ...invoker.Invoker) *Ensemble {
	return New(name, LocalSource(invokers...), nil)
}

// LocalSource returns the source of [Local], for [New] with options.
func LocalSource(invokers ...invoker.Invoker) Source {
	return localSource(slices.Clone(invokers))
}

type localSource []invoker.Invoker

// Open implements [Source].
func (s localSource) Open(ctx context.Context) (Connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.connect(), nil
}

// connect returns a connection, which is a context that all calls share.
func (s localSource) connect() *localConnection {
	c := &localConnection{}
	c.alive, c.end = context.WithCancel(context.Background())
	for _, i := range s {
		if i != nil {
			i = &localInvoker{i, c.alive}
		}
		c.invokers = append(c.invokers, i)
	}
	return c
}

// localConnection does not change.
type localConnection struct {
	invokers []invoker.Invoker
	alive    context.Context
	end      context.CancelFunc
}

func (c *localConnection) List(ctx context.Context) (Listing, error) {
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	if c.alive.Err() != nil {
		return Listing{}, lifetime.ErrEnded
	}
	return Listing{Invokers: slices.Clone(c.invokers)}, nil
}

func (c *localConnection) Changed() <-chan struct{} { return nil }
func (c *localConnection) Lost() <-chan struct{}    { return c.alive.Done() }
func (c *localConnection) Err() error               { return nil }
func (c *localConnection) Peer() Peer               { return Peer{} }

func (c *localConnection) Close(context.Context) error {
	c.end()
	return nil
}

// localInvoker is an invoker whose calls end with the connection.
type localInvoker struct {
	invoker.Invoker
	alive context.Context
}

func (i *localInvoker) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	return lifetime.During(ctx, i.alive, func(ctx context.Context) (invoker.Output, error) { return i.Invoker.Invoke(ctx, call) })
}
