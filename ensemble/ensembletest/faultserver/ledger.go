// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// IdempotencyKey is the member of a request's _meta that carries the stable ID of
// an invocation, as Consort sends it.
const IdempotencyKey = "io.github.consort-go/idempotency-key"

// Kind is the kind of an [Entry].
type Kind string

// The kinds of entries.
const (
	// KindStarted: a server began its life.
	KindStarted Kind = "started"
	// KindInitialize: initialize was received. Text is the version of the protocol.
	KindInitialize Kind = "initialize"
	// KindList: tools/list was received, for the first page.
	KindList Kind = "list"
	// KindCall: a call was received, with Key, Token and Arguments.
	KindCall Kind = "call"
	// KindEffect: the effect of a call happened. The entry is on disk before the call
	// is answered.
	KindEffect Kind = "effect"
	// KindCancelled: the client cancelled Request. Text is its reason.
	KindCancelled Kind = "cancelled"
	// KindStruck: a fault strikes: Fault at Place.
	KindStruck Kind = "struck"
	// KindChild: a child process was left running. Child is its process ID.
	KindChild Kind = "child"
	// KindElsewhere: a request followed a redirect to another origin. Text is its
	// method and the names of its headers.
	KindElsewhere Kind = "elsewhere"
)

// Entry is one line of the ledger.
type Entry struct {
	Time time.Time `json:"time"`
	PID  int       `json:"pid"`
	Kind Kind      `json:"kind"`

	Tool      string          `json:"tool,omitempty"`
	Key       string          `json:"key,omitempty"`     // see IdempotencyKey
	Request   json.RawMessage `json:"request,omitempty"` // the id of a JSON-RPC request
	Token     json.RawMessage `json:"token,omitempty"`   // the progress token
	Session   string          `json:"session,omitempty"` // over HTTP
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Fault     Fault           `json:"fault,omitempty"`
	Place     Place           `json:"place,omitempty"`
	Child     int             `json:"child,omitempty"`
	Text      string          `json:"text,omitempty"`
}

// Ledger is a list of events in the order of recording.
type Ledger []Entry

// ReadLedger reads the ledger of [Script.Dir]. If nothing was recorded, the ledger is
// empty. An incomplete last line, of a server that is writing or was killed, is
// omitted.
func ReadLedger(dir string) (Ledger, error) {
	data, err := os.ReadFile(ledgerFile(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("faultserver: %w", err)
	}
	var ledger Ledger
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return ledger, nil
		}
		data = rest
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("faultserver: line %d of the ledger: %w", number, err)
		}
		ledger = append(ledger, e)
	}
}

// Of returns the entries of one kind.
func (l Ledger) Of(kind Kind) Ledger {
	var some Ledger
	for _, e := range l {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// Effects returns the effects of calls.
func (l Ledger) Effects() Ledger { return l.Of(KindEffect) }

// With returns the entries whose argument "key" has this value: the calls and effects
// of one operation of a test.
func (l Ledger) With(key string) Ledger {
	var some Ledger
	for _, e := range l {
		var arguments struct{ Key *string }
		if json.Unmarshal(e.Arguments, &arguments) == nil && arguments.Key != nil && *arguments.Key == key {
			some = append(some, e)
		}
	}
	return some
}

func ledgerFile(dir string) string { return filepath.Join(dir, "ledger.jsonl") }

// recorder writes to the ledger; a nil recorder writes nothing.
type recorder struct {
	mu   sync.Mutex
	file *os.File
}

func newRecorder(dir string) (*recorder, error) {
	if dir == "" {
		return nil, nil
	}
	f, err := os.OpenFile(ledgerFile(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("faultserver: open the ledger: %w", err)
	}
	return &recorder{file: f}, nil
}

// add writes an entry atomically, so that the entries of several processes do not mix.
// An effect is on disk when add returns.
func (r *recorder) add(e Entry) error {
	if r == nil {
		return nil
	}
	e.Time, e.PID = time.Now().UTC(), os.Getpid()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("faultserver: write to the ledger: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.file.Write(append(line, '\n'))
	if err == nil && e.Kind == KindEffect {
		err = r.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("faultserver: write to the ledger: %w", err)
	}
	return nil
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file.Close()
}
