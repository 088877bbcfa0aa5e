// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// Source is a fake [ensemble.Source] under the control of a test. All methods may be
// called concurrently.
type Source struct {
	// Peer is the peer that every connection reports. It may be set before the source
	// is used.
	Peer ensemble.Peer

	mu          sync.Mutex
	tools       []invoker.Invoker
	aside       []ensemble.Aside
	library     *local.Library // nil without a library
	connections []*connection  // not yet closed
	steps       map[Step]*script
}

// Step is an operation of a source that a test can make fail or hang.
type Step string

// The steps.
const (
	Open  Step = "open"
	List  Step = "list"
	Ping  Step = "ping"
	Close Step = "close"
)

// script is the planned behavior of a step.
type script struct {
	count    int   // number of times the step was begun
	failures int   // number of failures still to come
	err      error // the error of these failures
	hang     chan struct{}
	stubborn bool
}

var _ ensemble.Source = (*Source)(nil)

// NewSource makes a source that offers the given tools, in that order.
func NewSource(tools ...invoker.Invoker) *Source {
	s := &Source{
		tools: slices.Clone(tools),
		steps: map[Step]*script{Open: {}, List: {}, Ping: {}, Close: {}},
	}
	for _, step := range librarySteps {
		s.steps[step] = &script{}
	}
	return s
}

// SetTools changes the tools on offer, and the connections report it. Removed tools
// answer TOOL_NOT_FOUND from now on.
func (s *Source) SetTools(tools ...invoker.Invoker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = slices.Clone(tools)
	for _, c := range s.connections {
		c.sayChanged()
	}
}

// SetAside sets the tools that listings report as impossible to offer. It does not make
// the connections report a change.
func (s *Source) SetAside(aside ...ensemble.Aside) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside = slices.Clone(aside)
}

// Fail makes a step fail with err the next n times.
func (s *Source) Fail(step Step, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[step].failures, s.steps[step].err = n, err
}

// Hang makes a step hang from now on, until release is called, which may be called more
// than once. A step hangs no longer than its context lasts, unless stubborn is set.
func (s *Source) Hang(step Step, stubborn bool) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hang := make(chan struct{})
	s.steps[step].hang, s.steps[step].stubborn = hang, stubborn
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(hang)
		if s.steps[step].hang == hang {
			s.steps[step].hang = nil
		}
	})
}

// Lose ends all connections as if the other end had disappeared. The cause must not be
// nil. Calls in flight that then fail with a code other than UNAVAILABLE fail with
// OUTCOME_UNKNOWN, and later ones with UNAVAILABLE.
func (s *Source) Lose(cause error) {
	s.mu.Lock()
	connections := slices.Clone(s.connections)
	s.mu.Unlock()
	for _, c := range connections {
		c.lose(cause)
	}
}

// Count returns how often a step was begun, whether or not it succeeded.
func (s *Source) Count(step Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps[step].count
}

// Connections returns the number of open connections, including lost ones until they
// are closed.
func (s *Source) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}

// Open makes a connection, unless [Source.Fail] or [Source.Hang] prevents it.
func (s *Source) Open(ctx context.Context) (ensemble.Connection, error) {
	if err := s.step(ctx, Open); err != nil {
		return nil, err
	}
	c := &connection{source: s, changed: make(chan struct{}, 1)}
	c.alive, c.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, c)
	if s.library != nil {
		return librarian{c, c}, nil
	}
	return c, nil
}

// step counts a step and follows its script.
func (s *Source) step(ctx context.Context, step Step) error {
	s.mu.Lock()
	script := s.steps[step]
	script.count++
	var err error
	if script.failures > 0 {
		script.failures--
		err = script.err
	}
	hang, ended := script.hang, ctx.Done()
	if script.stubborn {
		ended = nil
	}
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ended:
		}
	}
	if err != nil {
		return err
	}
	return ctx.Err()
}

// offers reports whether the source still offers the tool.
func (s *Source) offers(tool invoker.Invoker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tools, func(offered invoker.Invoker) bool {
		if !reflect.ValueOf(tool).Comparable() { // == would panic
			return reflect.DeepEqual(offered, tool)
		}
		return offered == tool
	})
}

// connection is one connection of a fake source.
type connection struct {
	source  *Source
	changed chan struct{}
	closing sync.Once
	closed  error // the result of Close

	alive context.Context // ends when the connection does
	end   context.CancelFunc

	mu  sync.Mutex
	err error // the cause of the loss

	heard      func(ensemble.News)
	subscribed []string
}

func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	if err := c.usable(); err != nil {
		return ensemble.Listing{}, err
	}
	if err := c.source.step(ctx, List); err != nil {
		return ensemble.Listing{}, err
	}
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	listing := ensemble.Listing{Aside: slices.Clone(c.source.aside)}
	for _, tool := range c.source.tools {
		listing.Invokers = append(listing.Invokers, &bound{tool, c})
	}
	return listing, nil
}

// Ping implements [ensemble.Pinger].
func (c *connection) Ping(ctx context.Context) error {
	if err := c.usable(); err != nil {
		return err
	}
	return c.source.step(ctx, Ping)
}

func (c *connection) Changed() <-chan struct{} { return c.changed }
func (c *connection) Lost() <-chan struct{}    { return c.alive.Done() }
func (c *connection) Peer() ensemble.Peer      { return c.source.Peer }

func (c *connection) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *connection) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.lose(nil)
		// A graceful end follows the script; a forced one takes no time.
		if err := c.source.step(ctx, Close); err != nil && ctx.Err() == nil {
			c.closed = err
		}
		c.source.mu.Lock()
		defer c.source.mu.Unlock()
		c.source.connections = slices.DeleteFunc(c.source.connections, func(o *connection) bool { return o == c })
	})
	return c.closed
}

func (c *connection) sayChanged() {
	c.mu.Lock()
	heard := c.heard
	c.mu.Unlock()
	if heard != nil {
		heard(ensemble.News{Kind: ensemble.ToolsChanged})
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// lose ends the connection; the cause is nil when Close ends it.
func (c *connection) lose(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive.Err() == nil {
		c.err = cause
		c.end()
	}
}

var errEnded = errors.New("the connection has ended")

// usable returns nil, or why the connection takes no more calls.
func (c *connection) usable() error {
	if c.alive.Err() == nil {
		return nil
	}
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return errEnded
}

// bound is a tool on one connection.
type bound struct {
	invoker.Invoker
	connection *connection
}

func (b *bound) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	if err := b.connection.usable(); err != nil {
		return invoker.Output{}, invoker.Failf(invoker.Unavailable, "%w", err)
	}
	if err := ctx.Err(); err != nil {
		return invoker.Output{}, err
	}
	if !b.connection.source.offers(b.Invoker) {
		return invoker.Output{}, invoker.Failf(invoker.ToolNotFound, "There is no tool %q.", b.Definition().Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.connection.alive, cancel)()
	output, err := b.Invoker.Invoke(ctx, call)
	var failure *invoker.Failure
	certain := errors.As(err, &failure) && failure.Code == invoker.Unavailable
	if err != nil && !certain && b.connection.usable() != nil {
		return invoker.Output{}, invoker.Failf(invoker.OutcomeUnknown, "The connection ended during the call. It may or may not have taken effect: find out before you call it again. (%w)", err)
	}
	return output, err
}
