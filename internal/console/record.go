// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// record writes an action of a person to the audit trail and the log. The details are names and
// values, each a string or an object of strings.
func (c *Console) record(r *http.Request, p *person, what, conversation string, err error, details ...any) {
	arguments := map[string]any{}
	for i := 0; i+1 < len(details); i += 2 {
		arguments[details[i].(string)] = details[i+1]
	}
	form, _ := json.Marshal(arguments) // strings have a JSON form
	record := audit.Record{Asker: "console", ClientName: p.Name, Conversation: conversation, Tool: what, Arguments: form, By: p.Name, Code: audit.OK}
	if err != nil && !errors.Is(err, engine.ErrKept) {
		record.Code, record.Error = string(invoker.AsFailure(err).Code), c.Redact(err.Error())
	}
	c.Audit.Keep(r.Context(), record)
	logevent.Log(r.Context(), c.Logger, zapcore.InfoLevel, "a person acted in the console", logevent.ConsoleAction,
		zap.String("action", what), zap.String("client_name", p.Name), zap.String(telemetry.ConversationField, conversation), zap.String("code", record.Code))
}

// readEvery is how often a session's readings of one conversation are recorded, and maxRead how many
// conversations a session remembers for that.
const readEvery, maxRead = time.Hour, 1000

// owns reports whether a conversation belongs to a person. Those without an owner belong to the person who
// started the process.
func (p *person) owns(info history.Info) bool {
	return info.Owner == p.Owner && (p.Owner != "" || p.session.operates)
}

// recordReading records that a person reads a conversation of another person.
func (c conversationPages) recordReading(r *http.Request, p *person, info history.Info) {
	if !p.owns(info) && c.console.sessions.isNew(p.session, info.ID) {
		c.console.record(r, p, "read_conversation", info.ID, nil)
	}
}

// isNew reports whether a session has not read a conversation lately, and notes that it reads it now.
func (s *sessions) isNew(of *session, conversation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if at, ok := of.read[conversation]; ok && now.Sub(at) < readEvery {
		return false
	}
	if of.read == nil || len(of.read) >= maxRead {
		of.read = map[string]time.Time{}
	}
	of.read[conversation] = now
	return true
}

// maxFailed is how many failed logins are recorded in a minute.
const maxFailed = 60

// failedLogins counts the failed logins of a minute. Its methods may be called concurrently.
type failedLogins struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

// record records a failed login of the console, with the address of the connection. The last record of a
// minute says that there may be more.
func (f *failedLogins) record(c *Console, r *http.Request, p *person, code invoker.Code, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := c.Now(); now.Sub(f.since) >= time.Minute {
		f.since, f.n = now, 0
	}
	switch f.n++; {
	case f.n > maxFailed:
		return
	case f.n == maxFailed:
		why += " More logins that fail in this minute are not recorded."
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	c.record(r, p, "login", "", invoker.Failf(code, "%s", why), "address", address)
}
