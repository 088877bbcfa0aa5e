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
func (o *Options) answerTimeout() time.Duration {
	return min(max(o.KeepAlive, minAnswer), o.ConnectTimeout)
}

// pingWait returns the time until the next keep-alive check, or 0 if a ping is due now.
// It reports false if the connection is lost because the other end has stopped reading.
func (m *monitor) pingWait() (wait time.Duration, ok bool) {
	e := m.session.ensemble
	limit, unread := e.options.answerTimeout(), e.foreign.unread(m.connection)
	if unread >= limit {
		m.session.lose(fmt.Errorf("keep-alive: the server has read nothing for %s", unread.Round(time.Millisecond)))
		return 0, false
	}
	wait = m.silenceWait()
	if unread > 0 && wait > 0 {
		wait = min(wait, limit-unread)
	}
	return wait, true
}

// silenceWait returns the time until a ping is due. Anything that the other end sends
// counts as an answer. A running call postpones the ping too, because many servers
// answer nothing while they work, but only until a call has timed out.
func (m *monitor) silenceWait() time.Duration {
	every := m.session.ensemble.options.KeepAlive
	if wait := every - time.Since(time.Unix(0, m.session.heard.Load())); wait > 0 {
		return wait
	}
	if m.atWork() {
		return every
	}
	return 0
}

// atWork reports whether the other end may be silent because of a call.
func (m *monitor) atWork() bool {
	_, idle := m.session.ensemble.stats.idle()
	return !idle && !m.session.suspect.Load()
}

// ping asks the other end for a sign of life.
func (m *monitor) ping() error {
	limit := m.session.ensemble.options.answerTimeout()
	ctx, cancel := context.WithTimeout(m.session.alive, limit)
	defer cancel()
	err := m.session.do(ctx, cancel, "a ping", m.pinger.Ping)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return &limitError{"no answer", limit}
	}
	return err
}

// pinged handles the result of a ping, and reports whether the connection is kept. A
// ping without an answer is ignored if a call has started in the meantime and is still
// running: the other end may have begun to work on it before it read the ping.
func (m *monitor) pinged(err error) bool {
	switch {
	case err == nil:
		m.session.touch()
	case errors.Is(err, context.DeadlineExceeded) && m.atWork():
	default:
		m.session.lose(fmt.Errorf("keep-alive: %w", err))
		return false
	}
	return true
}
