// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// defaultProbe bounds the probe if neither ProbeTimeout nor a deadline does.
const defaultProbe = 5 * time.Second

// source opens connections to one server and remembers which generation of the protocol
// it speaks; docs/decisions/0003-protocol-negotiation.md has the reasons.
type source struct {
	options ClientOptions
	pinned  string // "" means to negotiate
	// inOrder says that a link delivers all messages in order, and is expensive to
	// open: if the server does not answer, an older protocol is tried on the same link.
	inOrder bool
	spawns  bool // dial starts a process
	dial    func(context.Context) (link, error)

	mu       sync.Mutex
	isLegacy bool // an older protocol is tried first
	silences int  // attempts in a row in which the newest protocol got no answer in time
}

// plan describes one attempt: the version to ask for, and how long to wait for an
// answer; 0 means until the deadline. After that the attempt ends or, if both is set,
// the server is also asked for an older version.
type plan struct {
	version string
	probe   time.Duration
	both    bool
}

var _ ensemble.Spawner = (*source)(nil)

// Spawns implements [ensemble.Spawner].
func (s *source) Spawns() bool { return s.spawns }

// Open implements [ensemble.Source].
func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	var last error
	for plans := s.plans(ctx); len(plans) > 0; plans = plans[1:] {
		p := plans[0]
		c, err := s.attempt(ctx, p)
		late := err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
		s.remember(p, c, late)
		if err == nil {
			return c, nil
		}
		last = err
		if ctx.Err() != nil || !worthAnother(err) {
			break
		}
		if errors.Is(err, errNoAnswer) { // it may support only this version, and be slow
			plans = append(plans, plan{version: p.version})
		}
		logevent.Log(ctx, s.options.Logger, zapcore.InfoLevel, "connecting failed; trying another version of the protocol", logevent.VersionRefused, zap.String("asked", p.version), zap.Error(err))
	}
	return nil, last
}

func (s *source) plans(ctx context.Context) []plan {
	if s.pinned != "" {
		return []plan{{version: s.pinned}}
	}
	newest := plan{version: wire.Modern, probe: s.options.ProbeTimeout, both: s.inOrder}
	if deadline, ok := ctx.Deadline(); ok && newest.probe <= 0 {
		newest.probe = time.Until(deadline) / 3
	} else if newest.probe <= 0 {
		newest.probe = defaultProbe
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLegacy {
		return []plan{{version: wire.Legacy}, newest}
	}
	return []plan{newest, {version: wire.Legacy}}
}

// remember records the outcome of an attempt for the next Open. c is nil if the attempt
// failed; late says that it failed because the time was up. A server that did not
// answer in time may be blocked by the first message or may just be slow, so the other
// protocol is tried next. If the server then connects, the newest protocol has gone
// unanswered only once, so it is tried again; after the second time it is not.
func (s *source) remember(p plan, c *connection, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.version != wire.Modern:
	case late:
		s.silences++
	default:
		s.silences = 0
	}
	switch {
	case late:
		s.isLegacy = p.version == wire.Modern
	case c != nil:
		isOlder := !c.modern && (c.asking == nil || !c.asking.knowsNewest())
		s.isLegacy = isOlder && s.silences != 1
	}
}

// attempt makes one connection. After an error, nothing is left open.
func (s *source) attempt(ctx context.Context, p plan) (*connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("server %q: connecting: %w", s.options.Server, err)
	}
	l, err := s.dial(ctx)
	if err != nil {
		return nil, &dialError{err}
	}
	c := newConnection(&s.options, l)
	if err := c.open(ctx, p); err != nil {
		var named *ensemble.ProcessError // names the server
		if errors.As(err, &named) {
			return nil, fmt.Errorf("connecting: %w", err)
		}
		return nil, fmt.Errorf("server %q: connecting: %w", s.options.Server, err)
	}
	return c, nil
}

// errNoAnswer is wrapped by the error of an attempt that ended because the server did not
// answer the first request in time.
var errNoAnswer = errors.New("no answer")

// dialError says that no link could be opened.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// worthAnother reports whether asking for another protocol version can help. It cannot
// if the server could not be reached, is busy, or refuses authorization.
func worthAnother(err error) bool {
	var dial *dialError
	var status *statusError
	var denied *authError
	switch {
	case errors.As(err, &dial), errors.As(err, &denied), nobodyThere(err):
		return false
	case errors.As(err, &status):
		return !status.unauthorized() && !status.transient()
	}
	return true
}
