// SPDX-License-Identifier: Apache-2.0

package identityconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/serverconn"
	"github.com/consort-go/consort/invoker"
)

// Options configure [Source].
type Options struct {
	// Server is the name of the server, for errors.
	Server string
	// Identity returns the identity that work is done for. Empty means the program's own
	// user, who uses the shared connection. If ok is false, the identity is unknown, and the
	// work is refused.
	Identity func(ctx context.Context) (identity string, ok bool)
	// Open returns the source of the connections of an identity. It is called for each
	// connection, and free, which may be nil, after its end.
	Open func(ctx context.Context, identity string) (source ensemble.Source, free func(), err error)
	// Login lets the person behind a call log in, after the call was refused with cause
	// because of a missing login. The call is repeated if the error is nil, and otherwise
	// fails with it. call may be nil. If Login is nil, a missing login is an error.
	Login func(ctx context.Context, identity string, call *invoker.Call, cause error) error
	// Idle is how long a connection without calls stays open; default 10 minutes. Limit is
	// how many connections are open at most; default 1000.
	Idle  time.Duration
	Limit int
}

// Source returns a source whose connections use shared for what is listed, and a
// connection of its own for each identity. The connections of shared must implement
// [ensemble.Pinger] and [ensemble.Library].
func Source(shared ensemble.Source, options *Options) ensemble.Source {
	s := &source{shared: shared, options: *options}
	if s.options.Idle <= 0 {
		s.options.Idle = 10 * time.Minute
	}
	if s.options.Limit <= 0 {
		s.options.Limit = 1000
	}
	return s
}

type source struct {
	shared  ensemble.Source
	options Options
}

// Open implements [ensemble.Source].
func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	opened, err := asServer(ctx, s.shared)
	if err != nil {
		return nil, err
	}
	return &connection{serverconn.Wrapper{Server: opened}, newPool(&s.options)}, nil
}

// asServer opens a connection of a source to an MCP server.
func asServer(ctx context.Context, from ensemble.Source) (serverconn.Server, error) {
	opened, err := from.Open(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := opened.(serverconn.Server)
	if !ok {
		return nil, errors.Join(fmt.Errorf("identityconn: %T does not implement all methods of a connection to an MCP server", opened), opened.Close(ctx))
	}
	return able, nil
}

// connection is the shared connection, with those of identities.
type connection struct {
	serverconn.Wrapper
	pool *pool
}

// List implements [ensemble.Connection].
func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	listing, err := c.Server.List(ctx)
	for i, listed := range listing.Invokers {
		if listed != nil {
			listing.Invokers[i] = &tool{Invoker: listed, pool: c.pool}
		}
	}
	return listing, err
}

// Close implements [ensemble.Connection].
func (c *connection) Close(ctx context.Context) error {
	c.pool.close()
	return c.Server.Close(ctx)
}

// Read implements [ensemble.Library].
func (c *connection) Read(ctx context.Context, uri string) (contents []canister.ResourceContent, err error) {
	err = c.pool.with(ctx, invoker.CallFrom(ctx), c.Server, func(s *opened) error {
		contents, err = s.server.Read(ctx, uri)
		return err
	})
	return contents, err
}

// Get implements [ensemble.Library].
func (c *connection) Get(ctx context.Context, name string, arguments map[string]string) (messages *ensemble.Messages, err error) {
	err = c.pool.with(ctx, invoker.CallFrom(ctx), c.Server, func(s *opened) error {
		messages, err = s.server.Get(ctx, name, arguments)
		return err
	})
	return messages, err
}

// Complete implements [ensemble.Library]. It does not ask for a login.
func (c *connection) Complete(ctx context.Context, request *ensemble.CompletionRequest) (found *ensemble.Completion, err error) {
	err = c.pool.with(ctx, nil, c.Server, func(s *opened) error {
		found, err = s.server.Complete(ctx, request)
		return err
	})
	return found, err
}

// tool is a tool of the shared connection, which is called over that of an identity.
type tool struct {
	invoker.Invoker
	pool *pool
}

// Invoke implements [invoker.Invoker].
func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (output invoker.Output, err error) {
	name := t.Definition().Name
	err = t.pool.with(ctx, call, nil, func(s *opened) error {
		callee := t.Invoker
		if s != nil {
			if callee = (*s.tools.Load())[name]; callee == nil {
				return invoker.Failf(invoker.ToolNotFound, "The server does not offer the tool %q to this user.", name)
			}
		}
		output, err = callee.Invoke(ctx, call)
		return err
	})
	return output, err
}
