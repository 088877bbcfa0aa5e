// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The versions of the protocol that this package asks for by name. A server
// that is asked for legacy may answer with an older one.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// defaultProbe bounds the probe when nothing else does.
const defaultProbe = 5 * time.Second

// source opens connections to one server and remembers which generation of
// the protocol it speaks; docs/decisions/0003-protocol-negotiation.md has the
// reasons.
type source struct {
	options ClientOptions
	pinned  string // "" negotiates
	// inOrder says that a link carries all messages in their order, and is dear:
	// a server that keeps silent is asked for an older protocol on the same one.
	inOrder bool
	spawns  bool // dial starts a process
	dial    func(context.Context) (link, error)

	mu       sync.Mutex
	isLegacy bool // an older protocol is asked for first
	silences int  // attempts in a row in which the newest protocol had no answer in time
}

// plan is one attempt: the version to ask for, and how long the server may
// keep silent to it; 0 is as long as there is. After a silence the attempt ends,
// or, with both, the server is asked for an older version as well.
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
		if errors.Is(err, errSilent) { // it may know this version only, and be slow
			plans = append(plans, plan{version: p.version})
		}
		event.Log(ctx, s.options.Logger, zapcore.InfoLevel, "connecting failed; trying another version of the protocol", event.VersionRefused, zap.String("asked", p.version), zap.Error(err))
	}
	return nil, last
}

func (s *source) plans(ctx context.Context) []plan {
	if s.pinned != "" {
		return []plan{{version: s.pinned}}
	}
	newest := plan{version: modern, probe: s.options.ProbeTimeout, both: s.inOrder}
	if deadline, ok := ctx.Deadline(); ok && newest.probe <= 0 {
		newest.probe = time.Until(deadline) / 3
	} else if newest.probe <= 0 {
		newest.probe = defaultProbe
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLegacy {
		return []plan{{version: legacy}, newest}
	}
	return []plan{newest, {version: legacy}}
}

// remember keeps what an attempt showed of the server, for the next Open; c is nil
// if it failed, and late says that it failed because the time was up. A server that
// was silent until then may be stuck on the first message, or was slow: it gets the
// other protocol next. If it then connects, it was asked for the newest one in vain
// only once, so that one is asked for again; after the second time it is not.
func (s *source) remember(p plan, c *connection, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.version != modern:
	case late:
		s.silences++
	default:
		s.silences = 0
	}
	switch {
	case late:
		s.isLegacy = p.version == modern
	case c != nil:
		isOlder := !c.modern && (c.asking == nil || !c.asking.knowsNewest())
		s.isLegacy = isOlder && s.silences != 1
	}
}

// attempt makes one connection. An error leaves nothing behind.
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
		var named *ensemble.ProcessError // says whose it is
		if errors.As(err, &named) {
			return nil, fmt.Errorf("connecting: %w", err)
		}
		return nil, fmt.Errorf("server %q: connecting: %w", s.options.Server, err)
	}
	return c, nil
}

// errSilent is in the chain of the error of an attempt that ended because the
// server did not answer the first question for a while.
var errSilent = errors.New("no answer")

// dialError is a link that could not be had at all.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// worthAnother reports whether asking for another version of the protocol can
// help: not where nobody answered, nor where the answer was about who we are.
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
