// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Harness is a source under test, with what the suite needs to know of it and
// do to it.
type Harness struct {
	// Source is the source. The server behind it offers the tools that
	// [ServerTools] describes, and no others.
	Source ensemble.Source
	// Lose, if not nil, breaks all connections from the other end, for example
	// by killing the server. Opening the source once more succeeds afterwards.
	Lose func()
	// Change, if not nil, makes the server offer one more tool, called late,
	// and no longer the tool fail.
	Change func()
	// NoProgress says that the source cannot carry progress reports.
	NoProgress bool
	// Library says that the server also offers what [ServerLibrary] describes.
	Library bool
	// Update, if not nil, makes the server tell that test://greeting was
	// updated.
	Update func()
	// ChangeLibrary, if not nil, makes the server offer one more resource,
	// test://late.
	ChangeLibrary func()
	// Patience is how long the suite waits for what ought to happen soon;
	// default 10 s.
	Patience time.Duration
}

// TestSource runs the suite that every [ensemble.Source] must pass. It makes a
// fresh harness for each case; what that starts is ended with t.Cleanup. Each
// case is a subtest, and says when it fails what the rule is.
func TestSource(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range slices.Concat(cases, libraryCases) {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			if reason := c.unfit(h); reason != "" {
				t.Skip(reason)
			}
			s := &subject{T: t, Harness: h}
			s.Patience = cmp.Or(h.Patience, 10*time.Second)
			defer func() {
				if t.Failed() {
					t.Log("the rule: " + c.rule)
				}
			}()
			c.check(s)
		})
	}
}

// testCase is one rule and how it is checked.
type testCase struct {
	name, rule string
	needs      need
	check      func(*subject)
}

// need is what a case needs of a harness.
type need int

const (
	nothing need = iota
	loss
	change
	progress
	library
	update
	libraryChange
	libraryLoss
)

// unfit returns why the case cannot be run, or the empty text if it can.
func (c testCase) unfit(h Harness) string {
	switch {
	case c.needs == loss && h.Lose == nil:
		return "the harness cannot lose a connection"
	case c.needs == change && h.Change == nil:
		return "the harness cannot change the tools"
	case c.needs == progress && h.NoProgress:
		return "the source carries no progress"
	case c.needs >= library && !h.Library:
		return "resources and prompts are not offered"
	case c.needs == update && h.Update == nil:
		return "the harness cannot update a resource"
	case c.needs == libraryChange && h.ChangeLibrary == nil:
		return "the harness cannot change the resources"
	case c.needs == libraryLoss && h.Lose == nil:
		return "the harness cannot lose a connection"
	}
	return ""
}

// subject is a harness while a case runs.
type subject struct {
	*testing.T
	Harness
}

// context returns a context that ends when the suite's patience does.
func (s *subject) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	s.Cleanup(cancel)
	return ctx
}

// open opens a connection and closes it after the test.
func (s *subject) open() ensemble.Connection {
	s.Helper()
	connection, err := s.Source.Open(s.context())
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	if connection == nil {
		s.Fatal("Open returned neither a connection nor an error")
	}
	s.Cleanup(func() { s.soon("Close", func() { connection.Close(s.expired()) }) })
	return connection
}

// expired returns a context that has ended.
func (s *subject) expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// soon calls f and fails when that takes longer than the suite's patience.
func (s *subject) soon(what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	s.await(what, done)
}

// await waits for done to be closed.
func (s *subject) await(what string, done <-chan struct{}) {
	s.Helper()
	select {
	case <-done:
	case <-time.After(s.Patience):
		s.Fatalf("%s: nothing within %v", what, s.Patience)
	}
}

// tools lists the tools by name.
func (s *subject) tools(connection ensemble.Connection) map[string]invoker.Invoker {
	s.Helper()
	listing, err := connection.List(s.context())
	if err != nil {
		s.Fatalf("List: %v", err)
	}
	tools := make(map[string]invoker.Invoker)
	for _, i := range listing.Invokers {
		tools[i.Definition().Name] = i
	}
	if len(tools) != len(listing.Invokers) {
		s.Fatal("List returned two tools of the same name")
	}
	return tools
}

// tool returns one tool of the connection.
func (s *subject) tool(connection ensemble.Connection, name string) invoker.Invoker {
	s.Helper()
	tool, ok := s.tools(connection)[name]
	if !ok {
		s.Fatalf("List does not hold the tool %q", name)
	}
	return tool
}

// waiting is a call of the tool wait that is under way.
type waiting struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the call has returned
	err    error         // what it returned
}

// wait calls the tool wait and returns when the server is known to be at it.
func (s *subject) wait(connection ensemble.Connection) *waiting {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.Cleanup(cancel)
	w := &waiting{cancel: cancel, done: make(chan struct{})}
	tool := s.tool(connection, "wait")
	begun := make(chan struct{}, 1)
	call := &invoker.Call{Progress: func(invoker.Progress) {
		select {
		case begun <- struct{}{}:
		default:
		}
	}}
	go func() {
		defer close(w.done)
		_, w.err = tool.Invoke(ctx, call)
	}()
	var guess <-chan time.Time // a source without progress leaves nothing better
	if s.NoProgress {
		guess = time.After(100 * time.Millisecond)
	}
	select {
	case <-begun:
	case <-guess:
	case <-w.done:
		s.Fatalf("the call of wait returned at once: %v", w.err)
	case <-time.After(s.Patience):
		s.Fatalf("the call of wait reported nothing within %v", s.Patience)
	}
	return w
}

// failed waits for the end of the call and returns its failure.
func (s *subject) failed(w *waiting) *invoker.Failure {
	s.Helper()
	s.await("the end of the call of wait", w.done)
	if w.err == nil {
		s.Fatal("the call of wait succeeded")
	}
	return invoker.AsFailure(w.err)
}
