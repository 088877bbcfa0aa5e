// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// errUnread says that conversations cannot be read, and does not name them.
var errUnread = errors.New("some conversations cannot be read: the log of the server says which, and why")

// unreadLog hides errors about conversations that cannot be read, and logs them. Its methods may be
// called concurrently.
type unreadLog struct {
	console *Console

	mu     sync.Mutex
	logged map[string]time.Time // texts, and when
}

// Bounds of an unreadLog: pages are loaded often.
const (
	unreadEvery = time.Hour // between two lines with the same text
	maxUnread   = 100       // texts that are remembered
)

// hide returns the part of an error about conversations that cannot be read that a person may know.
// The error names them, with their places, and they can belong to others: only auditors and
// operators get it. For other people, it is in the log.
func (l *unreadLog) hide(ctx context.Context, p *person, err error) error {
	if err == nil || p.Role.May(Audit) {
		return err
	}
	if ctx.Err() == nil && l.isDue(err.Error(), l.console.Now()) {
		logevent.Log(ctx, l.console.Logger, zap.WarnLevel, "conversations cannot be read", logevent.ConsoleUnread, zap.Error(err))
	}
	return errUnread
}

// notice shows such an error.
func (l *unreadLog) notice(err error) part {
	said := "Some conversations cannot be read. The log of the server says which, and why."
	if !errors.Is(err, errUnread) {
		said = "Some conversations cannot be read. " + l.console.clean.errorText(err)
	}
	return when(err != nil, el("p", class("notice failed"), text(said)))
}

// isDue reports whether a text was not logged for a while, and notes that it is logged now.
func (l *unreadLog) isDue(text string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.logged[text]; ok && now.Sub(at) < unreadEvery {
		return false
	}
	if len(l.logged) >= maxUnread {
		l.logged = map[string]time.Time{}
	}
	l.logged[text] = now
	return true
}
