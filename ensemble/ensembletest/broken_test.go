// SPDX-License-Identifier: Apache-2.0

package ensembletest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker"
)

// broken is a source that breaks one rule: the fake with something replaced.
type broken struct {
	*ensembletest.Source
	open   func(ctx context.Context, open func(context.Context) (ensemble.Connection, error)) (ensemble.Connection, error)
	close  func(ctx context.Context, c ensemble.Connection) error
	ping   func(ctx context.Context) error
	lost   <-chan struct{}
	err    error
	list   func(ctx context.Context, c ensemble.Connection) (ensemble.Listing, error)
	invoke func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error)
}

func (b *broken) Open(ctx context.Context) (ensemble.Connection, error) {
	open := b.Source.Open
	if b.open != nil {
		open = func(ctx context.Context) (ensemble.Connection, error) { return b.open(ctx, b.Source.Open) }
	}
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return &brokenConnection{c, b}, nil
}

type brokenConnection struct {
	ensemble.Connection
	broken *broken
}

func (c *brokenConnection) Close(ctx context.Context) error {
	if c.broken.close != nil {
		return c.broken.close(ctx, c.Connection)
	}
	return c.Connection.Close(ctx)
}

func (c *brokenConnection) Ping(ctx context.Context) error {
	if c.broken.ping != nil {
		return c.broken.ping(ctx)
	}
	return c.Connection.(ensemble.Pinger).Ping(ctx)
}

func (c *brokenConnection) Lost() <-chan struct{} {
	if c.broken.lost != nil {
		return c.broken.lost
	}
	return c.Connection.Lost()
}

func (c *brokenConnection) Err() error {
	if c.broken.err != nil {
		return c.broken.err
	}
	return c.Connection.Err()
}

func (c *brokenConnection) List(ctx context.Context) (ensemble.Listing, error) {
	list := c.Connection.List
	if c.broken.list != nil {
		list = func(ctx context.Context) (ensemble.Listing, error) { return c.broken.list(ctx, c.Connection) }
	}
	listing, err := list(ctx)
	for i, tool := range listing.Invokers {
		listing.Invokers[i] = &brokenInvoker{tool, c.broken}
	}
	return listing, err
}

type brokenInvoker struct {
	invoker.Invoker
	broken *broken
}

func (i *brokenInvoker) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	if i.broken.invoke != nil {
		return i.broken.invoke(ctx, i.Invoker, call)
	}
	return i.Invoker.Invoke(ctx, call)
}

// fixed returns an invoke that answers a tool in one way.
func fixed(tool string, text string, err error) func(context.Context, invoker.Invoker, *invoker.Call) (invoker.Output, error) {
	return func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
		if i.Definition().Name != tool {
			return i.Invoke(ctx, call)
		}
		return invoker.Output{Content: canister.Texts(text)}, err
	}
}

// breaks are ways to break rules, by the case that must find them.
var breaks = map[string]func(b *broken){
	"Open/fresh": func(b *broken) {
		b.close = func(ctx context.Context, c ensemble.Connection) error {
			b.Source.Lose(errors.New("all of them"))
			return c.Close(ctx)
		}
	},
	"Open/outlives": func(b *broken) {
		b.open = func(ctx context.Context, open func(context.Context) (ensemble.Connection, error)) (ensemble.Connection, error) {
			c, err := open(ctx)
			if err == nil {
				context.AfterFunc(ctx, func() { c.Close(ctx) })
			}
			return c, err
		}
	},
	"Open/ended": func(b *broken) {
		b.open = func(ctx context.Context, open func(context.Context) (ensemble.Connection, error)) (ensemble.Connection, error) {
			return open(context.WithoutCancel(ctx))
		}
	},
	"Open/leaves-nothing": func(b *broken) {
		b.close = func(ctx context.Context, c ensemble.Connection) error {
			go func() { select {} }()
			return c.Close(ctx)
		}
	},
	"List/complete": func(b *broken) {
		b.list = func(ctx context.Context, c ensemble.Connection) (ensemble.Listing, error) {
			listing, err := c.List(ctx)
			listing.Invokers = listing.Invokers[:len(listing.Invokers)-1] // the last page
			return listing, err
		}
	},
	"List/ended": func(b *broken) {
		b.list = func(ctx context.Context, c ensemble.Connection) (ensemble.Listing, error) {
			return c.List(context.WithoutCancel(ctx))
		}
	},
	"List/changed": func(b *broken) {
		var kept *ensemble.Listing
		b.list = func(ctx context.Context, c ensemble.Connection) (ensemble.Listing, error) {
			if kept == nil {
				listing, err := c.List(ctx)
				kept = &listing
				return listing, err
			}
			return ensemble.Listing{Invokers: slices.Clone(kept.Invokers)}, nil
		}
	},
	"Invoke/echo":         func(b *broken) { b.invoke = fixed("echo", "x", nil) },
	"Invoke/no-arguments": func(b *broken) { b.invoke = fixed("progress", "", errors.New("no arguments")) },
	"Invoke/fail":         func(b *broken) { b.invoke = fixed("fail", "no such city", nil) },
	"Invoke/ended": func(b *broken) {
		b.invoke = func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
			return i.Invoke(context.WithoutCancel(ctx), call)
		}
	},
	"Invoke/concurrent": func(b *broken) {
		busy := make(chan struct{}, 1)
		b.invoke = func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
			select {
			case busy <- struct{}{}:
				defer func() { <-busy }()
				time.Sleep(time.Millisecond)
				return i.Invoke(ctx, call)
			default:
				return invoker.Output{}, errors.New("busy")
			}
		}
	},
	"Invoke/progress": func(b *broken) {
		b.invoke = func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
			return i.Invoke(ctx, &invoker.Call{Arguments: call.Arguments, Progress: func(p invoker.Progress) { go call.Report(p) }})
		}
	},
	"Invoke/cancel": func(b *broken) {
		b.invoke = func(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
			defer context.AfterFunc(ctx, func() { b.Source.Lose(errors.New("the write was cut")) })()
			return i.Invoke(ctx, call)
		}
	},
	"Ping/answered": func(b *broken) { b.ping = func(context.Context) error { return nil } },
	"Close/ends":    func(b *broken) { b.lost = make(chan struct{}) },
	"Close/again": func(b *broken) {
		closed := false
		b.close = func(ctx context.Context, c ensemble.Connection) error {
			if closed {
				return errors.New("closed already")
			}
			closed = true
			return c.Close(ctx)
		}
	},
	"Close/in-flight": func(b *broken) { b.close = func(context.Context, ensemble.Connection) error { return nil } },
	"Close/ended": func(b *broken) {
		b.close = func(ctx context.Context, c ensemble.Connection) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Close(ctx)
		}
	},
	"Lost/noticed":   func(b *broken) { b.lost = make(chan struct{}) },
	"Lost/in-flight": func(b *broken) { b.invoke = unavailable },
	"Lost/reopened": func(b *broken) {
		b.open = func(ctx context.Context, open func(context.Context) (ensemble.Connection, error)) (ensemble.Connection, error) {
			if b.Source.Count(ensembletest.Open) > 0 {
				return nil, errors.New("the transport was used before")
			}
			return open(ctx)
		}
	},
}

// unavailable says of every call that failed that it was not made.
func unavailable(ctx context.Context, i invoker.Invoker, call *invoker.Call) (invoker.Output, error) {
	output, err := i.Invoke(ctx, call)
	if err != nil {
		err = invoker.Failf(invoker.Unavailable, "%w", err)
	}
	return output, err
}

// TestBroken runs the suite over a source that breaks one rule; only for
// TestSuiteFinds, which runs it in a process of its own.
func TestBroken(t *testing.T) {
	name := suite.BrokenRule(t, "ENSEMBLETEST_BREAK")
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		h := fakeHarness()
		b := &broken{Source: h.Source.(*ensembletest.Source)}
		breaks[name](b)
		h.Source = b
		h.Patience = time.Second
		return h
	})
}

// TestSuiteFinds checks that each case of the suite can fail.
func TestSuiteFinds(t *testing.T) { suite.Finds(t, "TestBroken", "ENSEMBLETEST_BREAK", breaks) }
