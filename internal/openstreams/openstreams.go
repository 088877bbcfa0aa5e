// SPDX-License-Identifier: Apache-2.0

// Package openstreams ends streams to clients that may not have them any longer: the token was
// withdrawn or has expired, or a right was taken away.
package openstreams

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/invoker"
)

// defaultEvery is how often streams are checked by default.
const defaultEvery = 10 * time.Second

// Set has the open streams of a server. The zero value has none. Its methods may be called
// concurrently.
type Set struct {
	// Every is how often each stream is checked; default 10 s. It must be set before the first
	// stream.
	Every time.Duration

	mu    sync.Mutex
	open  map[*stream]struct{}
	timer *time.Timer // runs while there are streams
}

// stream is an open stream.
type stream struct {
	end context.CancelCauseFunc

	mu       sync.Mutex
	required []func() error
	checking bool // a goroutine runs the checks
	again    bool // and has to run them again
}

type streamKey struct{}

// Open adds a stream until the caller calls remove. The context of the stream ends when check,
// or a function of [Require], returns an error, and [Reason] returns its text, which the client
// may see. A [invoker.Failure] with the code UNAVAILABLE does not end a stream: what it needs
// cannot be checked now. check is called from time to time, and by [Set.Recheck].
func (s *Set) Open(ctx context.Context, check func() error) (of context.Context, remove func()) {
	one := &stream{required: []func() error{check}}
	ctx, one.end = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*stream]struct{}{}
	}
	s.open[one] = struct{}{}
	if s.timer == nil {
		s.start()
	}
	return context.WithValue(ctx, streamKey{}, one), func() {
		one.end(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.open, one); len(s.open) == 0 && s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
	}
}

// start begins to check from time to time. The caller must hold s.mu.
func (s *Set) start() {
	every := s.Every
	if every <= 0 {
		every = defaultEvery
	}
	var timer *time.Timer
	timer = time.AfterFunc(every, func() {
		s.Recheck()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.timer == timer {
			timer.Reset(every)
		}
	})
	s.timer = timer
}

// Recheck begins to check all streams now. It does not wait: a check may ask another server,
// and one that hangs must not hold up those of other streams.
func (s *Set) Recheck() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, one := range all {
		one.recheck()
	}
}

// recheck begins to check the stream; if it is being checked, it is checked once more.
func (s *stream) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = s.checking; s.checking {
		return
	}
	s.checking = true
	go s.check()
}

// check runs the checks until none is due.
func (s *stream) check() {
	for more := true; more; {
		s.mu.Lock()
		required := slices.Clone(s.required)
		s.mu.Unlock()
		for _, check := range required {
			if err := check(); err != nil && !isUnavailable(err) {
				s.end(&endedError{err})
				break
			}
		}
		s.mu.Lock()
		more = s.again
		s.checking, s.again = more, false
		s.mu.Unlock()
	}
}

func isUnavailable(err error) bool {
	away, ok := errors.AsType[*invoker.Failure](err)
	return ok && away.Code == invoker.Unavailable
}

// Require makes the stream of ctx end when check returns an error, as for [Set.Open]. It does
// nothing if ctx is not that of a stream.
func Require(ctx context.Context, check func() error) {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.required = append(s.required, check)
	}
}

// Check runs the checks of the stream of ctx now, and returns the error of the first that fails, also
// one that says that it cannot be checked. It is nil if ctx does not belong to a stream.
func Check(ctx context.Context) error {
	s, ok := ctx.Value(streamKey{}).(*stream)
	if !ok {
		return nil
	}
	s.mu.Lock()
	required := slices.Clone(s.required)
	s.mu.Unlock()
	for _, check := range required {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// endedError is the cause of the end of a stream.
type endedError struct{ because error }

func (e *endedError) Error() string { return "the stream ended: " + e.because.Error() }

// Reason returns why a check ended the stream of ctx. ok is false if it is open, or ended
// otherwise.
func Reason(ctx context.Context) (why string, ok bool) {
	ended, ok := errors.AsType[*endedError](context.Cause(ctx))
	if !ok {
		return "", false
	}
	return ended.because.Error(), true
}

// Explain returns the error of a request, and adds a failure for its client if a check has ended the stream of ctx: an
// error of a context does not say that. The error may be nil.
func Explain(ctx context.Context, err error) error {
	why, ok := Reason(ctx)
	if !ok {
		return err
	}
	return errors.Join(err, invoker.Failf(invoker.Unavailable, "The request ended before its answer was ready: %s.", why))
}
