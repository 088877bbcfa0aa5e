// SPDX-License-Identifier: Apache-2.0

package identityconn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/serverconn"
	"github.com/consort-go/consort/invoker"
)

const (
	openTimeout  = 60 * time.Second
	closeTimeout = 5 * time.Second
)

// pool holds the connections of identities.
type pool struct {
	options *Options
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup // a goroutine for each connection

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
}

// entry is the connection of an identity, which may still be opening.
type entry struct {
	ready chan struct{} // closed when opened and err are set
	opened
	err  error
	drop chan struct{} // closed when the connection should end; guarded by pool.mu like the rest

	users   int
	removed bool // from entries
	idle    *time.Timer
}

// opened is an open connection and its tools by name.
type opened struct {
	server serverconn.Server
	tools  *atomic.Pointer[map[string]invoker.Invoker] // replaced when they have changed
}

func newPool(options *Options) *pool {
	p := &pool{options: options, entries: map[string]*entry{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// close closes all connections, and waits until they are closed.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	p.running.Wait()
}

// with calls do with the connection of the identity of ctx. For the program's own user it
// is called with shared, or with nil if shared is nil. If the identity has no login, with
// lets it log in and calls do again, which has made no call then.
func (p *pool) with(ctx context.Context, call *invoker.Call, shared serverconn.Server, do func(*opened) error) error {
	identity, ok := p.options.Identity(ctx)
	switch {
	case !ok:
		return invoker.Failf(invoker.Unauthorized, "The server %q is called with the login of the user, and nobody knows whose call this is. It was not made.", p.options.Server)
	case identity == "" && shared == nil:
		return do(nil)
	case identity == "":
		return do(&opened{server: shared})
	}
	loggedIn, reopened := false, false
	for {
		lost, err := p.try(ctx, identity, do)
		switch {
		case err == nil:
			return nil
		case needsLogin(err) && !loggedIn && p.options.Login != nil:
			if err := p.options.Login(ctx, identity, call, err); err != nil {
				return err
			}
			loggedIn = true
		case lost && !reopened && notMade(err):
			reopened = true
		default:
			return ownFailure(err)
		}
	}
}

// try calls do with the connection of an identity. lost reports that it has ended.
func (p *pool) try(ctx context.Context, identity string, do func(*opened) error) (lost bool, err error) {
	e, err := p.acquire(ctx, identity)
	if err != nil {
		return false, err
	}
	defer p.release(e, identity)
	err = do(&e.opened)
	select {
	case <-e.server.Lost():
		lost = true
	default:
	}
	if lost || saysLogin(err) {
		p.remove(identity, e)
	}
	return lost, err
}

// needsLogin reports whether a new login would help. It would not if the call may have been
// made, even if the connection was lost because the login has ended.
func needsLogin(err error) bool {
	if failed, ok := errors.AsType[*invoker.Failure](err); ok && failed.Code != invoker.Unauthorized {
		return false
	}
	return saysLogin(err)
}

// notMade reports whether a call was certainly not made. A failure with content is the
// answer to one that was.
func notMade(err error) bool {
	failure := invoker.AsFailure(err)
	return failure.Code == invoker.Unavailable && len(failure.Content) == 0
}

// saysLogin reports whether a missing login is among the causes of an error.
func saysLogin(err error) bool {
	var refused interface{ NeedsLogin() bool }
	return errors.Is(err, ensemble.ErrNeedsLogin) || errors.As(err, &refused) && refused.NeedsLogin()
}

// ownFailure returns the failure of an error without its chain: the ensemble would take a
// missing login, or a lost connection, for that of the shared connection.
func ownFailure(err error) error {
	own := *invoker.AsFailure(err)
	if needsLogin(err) {
		own.Code = invoker.Unauthorized
	}
	if own.Cause != nil && saysLogin(own.Cause) {
		own.Cause = errors.New(own.Cause.Error())
	}
	return &own
}

// acquire returns the open connection of an identity. The caller must release it.
func (p *pool) acquire(ctx context.Context, identity string) (*entry, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ensemble.ErrClosed
	}
	e := p.entries[identity]
	if e == nil {
		if len(p.entries) >= p.options.Limit && !p.evict() {
			p.mu.Unlock()
			return nil, invoker.UnavailableFor(time.Second, "Too many users call the server %q at once. The call was not made.", p.options.Server)
		}
		e = &entry{ready: make(chan struct{}), drop: make(chan struct{})}
		p.entries[identity] = e
		p.running.Go(func() { p.keep(context.WithoutCancel(ctx), identity, e) })
	}
	e.users++
	if e.idle != nil {
		e.idle.Stop()
	}
	p.mu.Unlock()
	select {
	case <-e.ready:
		if e.err == nil {
			return e, nil
		}
		p.release(e, identity)
		return nil, e.err
	case <-ctx.Done():
		p.release(e, identity)
		return nil, ctx.Err()
	}
}

// release ends the use of a connection.
func (p *pool) release(e *entry, identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	switch {
	case e.users > 0:
	case e.removed:
		close(e.drop)
	default:
		e.idle = time.AfterFunc(p.options.Idle, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.users == 0 {
				p.forget(identity, e)
			}
		})
	}
}

// remove makes the next call of an identity open another connection.
func (p *pool) remove(identity string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(identity, e)
}

// forget removes an entry, and ends it if nobody uses it; p.mu is held.
func (p *pool) forget(identity string, e *entry) {
	if e.removed {
		return
	}
	e.removed = true
	delete(p.entries, identity)
	if e.users == 0 {
		close(e.drop)
	}
}

// evict ends a connection that nobody uses; p.mu is held.
func (p *pool) evict() bool {
	for identity, e := range p.entries {
		if e.users == 0 {
			p.forget(identity, e)
			return true
		}
	}
	return false
}

// keep opens the connection of an entry and closes it when it should end.
func (p *pool) keep(ctx context.Context, identity string, e *entry) {
	var free func()
	e.opened, free, e.err = p.open(ctx, identity)
	defer free()
	if e.err != nil {
		p.remove(identity, e) // before those who wait try again
		close(e.ready)
		return
	}
	close(e.ready)
	p.follow(ctx, identity, e)
	p.remove(identity, e)
	ending, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = e.server.Close(ending)
}

// follow lists the tools of a connection again when they have changed. It returns when the
// connection should end. If the tools cannot be listed, the next call opens another
// connection, and this one ends after the calls that are under way.
func (p *pool) follow(ctx context.Context, identity string, e *entry) {
	changed := e.server.Changed()
	for {
		select {
		case <-changed:
			if err := p.list(ctx, &e.opened); err != nil {
				p.remove(identity, e)
				changed = nil
			}
		case <-e.server.Lost():
			return
		case <-e.drop:
			return
		case <-p.life.Done():
			return
		}
	}
}

// open opens a connection for an identity and lists its tools. free is never nil.
func (p *pool) open(ctx context.Context, identity string) (o opened, free func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	source, free, err := p.options.Open(ctx, identity)
	if free == nil {
		free = func() {}
	}
	if err != nil {
		return o, free, err
	}
	if o.server, err = asServer(ctx, source); err != nil {
		return o, free, err
	}
	o.server.Listen(func(ensemble.News) {}) // the shared connection reports changes
	o.tools = new(atomic.Pointer[map[string]invoker.Invoker])
	if err := p.list(ctx, &o); err != nil {
		ending, over := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer over()
		return o, free, errors.Join(err, o.server.Close(ending))
	}
	return o, free, nil
}

// list lists the tools of a connection.
func (p *pool) list(ctx context.Context, o *opened) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	listing, err := o.server.List(ctx)
	if err != nil {
		return err
	}
	tools := map[string]invoker.Invoker{}
	for _, listed := range listing.Invokers {
		if listed != nil {
			tools[listed.Definition().Name] = listed
		}
	}
	o.tools.Store(&tools)
	return nil
}
