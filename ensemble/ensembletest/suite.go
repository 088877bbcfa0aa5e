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

// Harness is a source under test, with the information and the functions that the suite
// needs.
type Harness struct {
	// Source is the source. Its server must offer exactly the tools that [ServerTools]
	// describes.
	Source ensemble.Source
	// Lose, if not nil, breaks all connections from the other end, for example by
	// killing the server. After that, opening the source again must succeed.
	Lose func()
	// Change, if not nil, makes the server add a tool called late and remove the tool
	// fail.
	Change func()
	// NoProgress means that the source cannot carry progress reports.
	NoProgress bool
	// Library means that the server also offers the library that [ServerLibrary]
	// describes.
	Library bool
	// Update, if not nil, makes the server report that test://greeting was updated.
	Update func()
	// ChangeLibrary, if not nil, makes the server add the resource test://late.
	ChangeLibrary func()
	// Patience is how long the suite waits for events that should happen soon; default
	// 10 s.
	Patience time.Duration
}

// TestSource runs the suite that every [ensemble.Source] must pass. It makes a fresh
// harness for each case; the harness should clean up with t.Cleanup. Each case is a
// subtest, and logs its rule when it fails.
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

// testCase is one rule with its check.
type testCase struct {
	name, rule string
	needs      need
	check      func(*subject)
}

// need is a requirement of a case on the harness.
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

// unfit returns why the case cannot be run, or the empty string if it can.
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

// subject is a harness during a case.
type subject struct {
	*testing.T
	Harness
}

// context returns a context with Patience as its timeout.
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

// soon calls f and fails the test if that takes longer than Patience.
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
		s.Fatalf("List does not contain the tool %q", name)
	}
	return tool
}

// waiting is a running call of the tool wait.
type waiting struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the call has returned
	err    error         // the error it returned
}

// wait calls the tool wait and returns when the server is known to have begun it.
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
	var guess <-chan time.Time // without progress reports, wait a moment
	if s.NoProgress {
		guess = time.After(100 * time.Millisecond)
	}
	select {
	case <-begun:
	case <-guess:
	case <-w.done:
		s.Fatalf("the call of wait returned immediately: %v", w.err)
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
