// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minAnswer is the least time that a connection has to answer a ping.
const minAnswer = 5 * time.Second

// answerTimeout bounds the answer to a ping, and how long an [Unreader] may leave sent
// data unread.
func (e *Ensemble) answerTimeout() time.Duration {
	return min(max(e.options.KeepAlive, minAnswer), e.options.ConnectTimeout)
}

// hear records a sign of life from the other end.
func (l *life) hear() {
	l.heard.Store(time.Now().UnixNano())
	l.suspect.Store(false)
}

// pingWait returns the time until the next keep-alive check, or 0 if a ping is due now.
// It reports false if the connection is lost because the other end has stopped reading.
func (e *Ensemble) pingWait(l *life, connection Connection) (wait time.Duration, ok bool) {
	limit := e.answerTimeout()
	unread := e.unread(connection)
	if unread >= limit {
		e.lose(l, fmt.Errorf("keep-alive: it has read nothing for %s", unread.Round(time.Millisecond)))
		return 0, false
	}
	wait = e.silenceWait(l)
	if unread > 0 && wait > 0 {
		wait = min(wait, limit-unread)
	}
	return wait, true
}

// silenceWait returns the time until a ping is due. Anything that the other end sends
// counts as an answer. A running call postpones the ping too, because many servers
// answer nothing while they work, but only until a call has timed out.
func (e *Ensemble) silenceWait(l *life) time.Duration {
	every := e.options.KeepAlive
	if wait := every - time.Since(time.Unix(0, l.heard.Load())); wait > 0 {
		return wait
	}
	if e.atWork(l) {
		return every
	}
	return 0
}

// atWork reports whether the other end may be silent because of a call.
func (e *Ensemble) atWork(l *life) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tally.inUse() && !l.suspect.Load()
}

// unread returns for how long the other end has read nothing; see [Unreader].
func (e *Ensemble) unread(connection Connection) time.Duration {
	able, ok := connection.(Unreader)
	if !ok {
		return 0
	}
	unread, err := guard(e.log, func() (time.Duration, error) { return able.Unread(), nil })
	if err != nil {
		return 0
	}
	return unread
}

// ping asks the other end for a sign of life.
func (e *Ensemble) ping(l *life, pinger Pinger) error {
	limit := e.answerTimeout()
	ctx, cancel := context.WithTimeout(l.alive, limit)
	defer cancel()
	j := &job{name: "a ping", life: l, cancel: cancel, done: make(chan struct{})}
	if err := e.begin(j); err != nil {
		return err
	}
	_, err := run(ctx, e, j, func(ctx context.Context) (struct{}, error) { return struct{}{}, pinger.Ping(ctx) })
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return &limitError{"no answer", limit}
	}
	return err
}

// pinged handles the result of a ping, and reports whether the connection is kept. A
// ping without an answer is ignored if a call has started in the meantime and is still
// running: the other end may have begun to work on it before it read the ping.
func (e *Ensemble) pinged(l *life, err error) bool {
	switch {
	case err == nil:
		l.hear()
	case errors.Is(err, context.DeadlineExceeded) && e.atWork(l):
	default:
		e.lose(l, fmt.Errorf("keep-alive: %w", err))
		return false
	}
	return true
}
