// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/mcpadapter"
)

const maxMessage = 1 << 20 // of one message that a server may send

// stage is one conversation with a faulty server and a healthy one.
type stage struct {
	*testing.T
	cell    cell
	dir     string  // of the faulty server's ledger
	server  *Server // over HTTP
	faulty  *ensemble.Ensemble
	roster  *ensemble.Roster
	talk    *converse.Conversation
	model   *prompter
	prefix  string // of the keys of the healthy server
	healthy string // directory of its ledger
	turns   int
}

// prompter is a model that a test gives a script for each turn.
type prompter struct{ *conversetest.Script }

func newStage(t *testing.T, c cell, healthy *Server, healthyDir string) *stage {
	s := &stage{T: t, cell: c, dir: t.TempDir(), model: &prompter{}, prefix: t.Name(), healthy: healthyDir}
	s.faulty = ensemble.New("faulty", s.source(), c.options())
	well := ensemble.New("healthy", mcpadapter.HTTP(healthy.URL(), nil), &ensemble.Options{ConnectTimeout: bound, CallTimeout: bound})
	roster, err := ensemble.NewRoster(s.faulty, well)
	if err != nil {
		t.Fatal(err)
	}
	s.roster = roster
	s.talk = converse.New(s.model, roster, &converse.Options{Approve: s.gate})
	t.Cleanup(s.close)
	return s
}

// source starts the faulty server, or says how.
func (s *stage) source() ensemble.Source {
	script := Script{Dir: s.dir, Life: 3 * time.Minute, Rules: s.cell.rules()}
	client := mcpadapter.ClientOptions{MaxMessage: maxMessage}
	if s.cell.Via == overStdio {
		return mcpadapter.Stdio([]string{os.Args[0]}, &mcpadapter.StdioOptions{
			ClientOptions: client,
			Environment:   map[string]string{Variable: script.Environ()[len(Variable)+1:]},
			Grace:         300 * time.Millisecond,
		})
	}
	server, err := StartHTTP(script, &Options{ComeBack: 50 * time.Millisecond})
	if err != nil {
		s.Fatal(err)
	}
	s.server = server
	s.Cleanup(func() {
		if err := server.Close(); err != nil {
			s.Errorf("close the server: %v", err)
		}
	})
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Roots()}
	s.Cleanup(transport.CloseIdleConnections)
	return mcpadapter.HTTP(server.URL(), &mcpadapter.HTTPOptions{ClientOptions: client, Client: &http.Client{Transport: transport}})
}

// gate keeps the call that is to be struck until its sibling runs.
func (s *stage) gate(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	if s.cell.When == parallel && ask.Invocation.CallID == "struck" {
		s.eventually("the effect of the sibling", func() bool { return len(s.ledger().With("sibling").Effects()) > 0 })
	}
	return converse.Allow(), nil
}

// turn sends one message whose answer makes calls, together with one to the healthy
// ensemble, and returns the codes of the results by CallID.
func (s *stage) turn(calls ...conversetest.Call) map[string]string {
	s.Helper()
	s.turns++
	key := s.prefix + strconv.Itoa(s.turns)
	calls = append(calls, conversetest.Call{Name: "healthy__effect", Arguments: arguments(key), CallID: "healthy"})
	s.model.Script = conversetest.NewScript(conversetest.Line{Calls: calls}, conversetest.Line{Text: "So be it."})
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	if _, err := s.talk.Ask(ctx, canister.Text("Go on.")); err != nil {
		s.Fatalf("turn %d: %v", s.turns, err)
	}
	if err := s.model.Err(); err != nil {
		s.Errorf("turn %d: %v", s.turns, err)
	}
	history := s.talk.History()
	for _, problem := range sequence.Check(history) {
		s.Errorf("turn %d: the history is broken: %v", s.turns, problem)
	}
	codes := codesOf(s.T, history[len(history)-2*len(calls)-1:])
	if codes["healthy"] != ok {
		s.Errorf("turn %d: the call of the healthy ensemble came to %s", s.turns, codes["healthy"])
	}
	if n := len(ledgerOf(s.T, s.healthy).With(key).Effects()); n != 1 {
		s.Errorf("turn %d: the call of the healthy ensemble took effect %d times", s.turns, n)
	}
	return codes
}

// codesOf returns the codes of results by the CallID of their invocations.
func codesOf(t *testing.T, history []canister.Canister) map[string]string {
	ids, codes := map[string]string{}, map[string]string{}
	for _, c := range history {
		switch c := c.(type) {
		case canister.Invocation:
			ids[c.ID] = c.CallID
		case canister.Result:
			codes[ids[c.Invocation]] = ok
			if c.Code != "" {
				codes[ids[c.Invocation]] = c.Code
				t.Logf("%s: %s: %.300s", ids[c.Invocation], c.Code, canister.TextOf(c.Content))
			}
		}
	}
	return codes
}

func arguments(key string) string { return fmt.Sprintf(`{"key":%q}`, key) }

func effect(id string) conversetest.Call {
	return conversetest.Call{Name: "faulty__effect", Arguments: arguments(id), CallID: id}
}

// play runs the fault and returns the outcome.
func (s *stage) play() outcome {
	var seen outcome
	calls := []conversetest.Call{effect("struck")}
	if s.cell.When != connecting {
		s.connect()
		if got := s.turn(conversetest.Call{Name: "faulty__echo", Arguments: `{"text":"first"}`, CallID: "first"}); !allows(s.cell.before(), got["first"]) {
			s.Errorf("the call before the fault came to %s", got["first"])
		}
	}
	switch s.cell.When {
	case idle:
		s.eventually("the fault", s.struck)
		s.settle()
		if s.cell.Connection == fresh {
			s.eventually("the loss to be noticed", func() bool {
				now := s.faulty.Snapshot()
				return now.State != ensemble.Ready || now.Restarts > 0
			})
		}
	case parallel:
		calls = append(calls, conversetest.Call{Name: "faulty__idempotent_effect", Arguments: arguments("sibling"), CallID: "sibling"})
	}
	codes := s.turn(calls...)
	if !s.struck() {
		s.Error("the fault did not strike")
	}
	seen.Call, seen.Sibling = codes["struck"], codes["sibling"]
	s.settle()
	seen.Back = s.recover()
	seen.Connection = kept
	if s.faulty.Snapshot().Restarts > 0 {
		seen.Connection = fresh
	}
	s.close()
	if n := len(s.ledger().With("sibling").Effects()); s.cell.When == parallel && n != 1 {
		s.Errorf("the call beside took effect %d times", n)
	}
	seen.Effects = strconv.Itoa(len(s.ledger().With("struck").Effects()))
	return seen
}

// connect connects the faulty ensemble before its fault strikes. On a busy machine an attempt
// can take longer than the limit that the cell needs later.
func (s *stage) connect() {
	s.eventually("a connection", func() bool { return s.faulty.Connect(s.Context()) == nil })
}

// triedAgain reports whether an attempt to connect failed. On a busy machine its backoff of
// one second can end while the first turn still connects the healthy ensemble; then the turn
// tries again and finds the tool.
func (s *stage) triedAgain() bool {
	return s.cell.When == connecting && s.faulty.Snapshot().LastError != nil
}

func (s *stage) struck() bool { return len(s.ledger().Of(KindStruck)) > 0 }

// settle waits until a server over HTTP that died is back. What lasts as long
// as its life ends with it.
func (s *stage) settle() {
	if s.server == nil {
		return
	}
	if s.cell.When == connecting && (s.cell.Fault == "self-signed" || s.cell.At == "start") {
		if err := s.server.Restart(); err != nil {
			s.Fatal(err)
		}
	}
	s.eventually("the server to be back", s.server.Running)
}

// recover makes calls until one succeeds, and says when that was. None of them
// takes effect twice.
func (s *stage) recover() string {
	end := time.Now().Add(bound)
	for n := 1; ; n++ {
		id := "later-" + strconv.Itoa(n)
		code := s.turn(effect(id))[id]
		effects := len(s.ledger().With(id).Effects())
		switch {
		case effects > 1, code == ok && effects == 0:
			s.Errorf("%s came to %s and took effect %d times", id, code, effects)
			return ""
		case code == ok && n == 1:
			return atOnce
		case code == ok:
			return soon
		case time.Now().After(end):
			s.Errorf("no call has succeeded since: %s", code)
			return ""
		}
		time.Sleep(100 * time.Millisecond) // a person's pause between two turns
	}
}

// close ends the conversation and checks that nothing is left.
func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := s.talk.Close(ctx); err != nil {
		s.Errorf("close the conversation: %v", err)
	}
	if err := s.roster.Close(ctx); err != nil {
		s.Errorf("close the roster: %v", err)
	}
	for _, e := range s.ledger() {
		switch {
		case e.Kind == KindChild && alive(e.Child):
			s.Errorf("the child %d is left", e.Child)
		case e.Kind == KindStarted && s.cell.Via == overStdio && alive(e.PID):
			s.Errorf("the process %d is left", e.PID)
		}
	}
}

func (s *stage) ledger() Ledger { return ledgerOf(s.T, s.dir) }

func ledgerOf(t *testing.T, dir string) Ledger {
	ledger, err := ReadLedger(dir)
	if err != nil {
		t.Error(err)
	}
	return ledger
}

// eventually waits for something.
func (s *stage) eventually(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(bound); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Errorf("waited in vain for %s", what)
			return
		}
	}
}
