// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/suite"
)

// Harness is a model under test, with what the suite needs to know of it.
type Harness struct {
	// Model is the model. The server behind it answers as [TestModel] says.
	Model converse.Model
	// Received, if not nil, returns what the server got with the latest
	// request: the bytes of its body, or whatever says the same.
	Received func() string
	// Whole says that the model does not stream: its deltas, if any, come with
	// the reply.
	Whole bool
	// Patience is how long the suite waits for what ought to happen soon;
	// default 10 s.
	Patience time.Duration
}

// TestModel runs the suite that every [converse.Model] must pass. It makes a
// fresh harness for each case; what that starts is ended with t.Cleanup. Each
// case is a subtest, and says when it fails what the rule is.
//
// The server behind the model is scripted. A request whose history holds n
// assistant messages is answered as lines[n] says, however often and by how
// many conversations at the same time it is sent:
//
//   - Text is the answer; if Finish is refusal it is sent as the API sends
//     refusals. It is streamed in several pieces when the model streams.
//   - Calls are asked for in this order, with these names and arguments as they
//     stand. A CallID that is empty is sent as an empty one, or left out, and
//     equal ones are sent equal, as far as the API allows it.
//   - Finish is the API's word for it; if it is empty, the one that goes with
//     the rest.
//   - Usage is reported as it is: not at all when it is nil.
//   - Wait, if not nil, keeps the server from sending anything after Text. It
//     is never closed: the server waits until the client has gone.
//   - Err is a [*converse.ModelError] with a Message, a Status and Retryable.
//     Without Text the server refuses the request with this status and
//     message, however often it is tried; with Text the answer breaks off
//     after it, and only Retryable counts.
//
// Lines have nothing else. Models that try again by themselves should be set
// up to do so quickly, or not at all.
func TestModel(t *testing.T, newHarness func(t *testing.T, lines []Line) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, c.lines)
			s := &subject{T: t, Harness: h, lines: c.lines}
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
	lines      []Line
	check      func(*subject)
}

// subject is a harness while a case runs.
type subject struct {
	*testing.T
	Harness
	lines []Line
	ids   atomic.Int64
}

// newID makes identities, and remembers how many.
func (s *subject) newID() string { return fmt.Sprintf("made-%d", s.ids.Add(1)) }

// context returns a context that ends when the suite's patience does.
func (s *subject) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	s.Cleanup(cancel)
	return ctx
}

// request asks for line n.
func (s *subject) request(n int) *converse.Request {
	return &converse.Request{History: historyOf(n), Tools: tools(), NewID: s.newID}
}

// exchanged is what came of an exchange.
type exchanged struct {
	text    string // of the deltas
	deltas  int    // that hold text
	reply   converse.Reply
	replies int
	after   int // events after the first reply
	err     error
}

// exchange runs an exchange to its end.
func (s *subject) exchange(ctx context.Context, model converse.Model, request *converse.Request) exchanged {
	var x exchanged
	for event, err := range model.Exchange(ctx, request) {
		if x.replies > 0 || x.err != nil {
			x.after++
		}
		if err != nil {
			x.err = err
			continue
		}
		switch event := event.(type) {
		case converse.Delta:
			x.text += event.Text
			if event.Text != "" {
				x.deltas++
			}
		case converse.Reply:
			x.reply = event
			x.replies++
		case converse.Retry:
		default:
			x.err = fmt.Errorf("the model yields a %T", event)
		}
	}
	return x
}

// answer returns what came of an exchange that has to succeed.
func (s *subject) answer(model converse.Model, request *converse.Request) exchanged {
	s.Helper()
	x := s.exchange(s.context(), model, request)
	switch {
	case x.err != nil:
		s.Fatalf("the exchange failed: %v", x.err)
	case x.replies != 1:
		s.Fatalf("the exchange yields %d replies", x.replies)
	case x.after != 0:
		s.Fatalf("the exchange yields %d events after its reply", x.after)
	}
	return x
}

// failure returns the error of an exchange that has to fail soon.
func (s *subject) failure(ctx context.Context, request *converse.Request) error {
	s.Helper()
	var x exchanged
	s.soon("the end of the exchange", func() { x = s.exchange(ctx, s.Model, request) })
	switch {
	case x.replies > 0:
		s.Error("the exchange yields a reply")
	case x.err == nil:
		s.Fatal("the exchange ends without an error")
	case x.after != 0:
		s.Errorf("the exchange yields %d events after its error", x.after)
	}
	return x.err
}

// soon calls f and fails when that takes longer than the suite's patience.
func (s *subject) soon(what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(s.Patience):
		s.Fatalf("%s: nothing within %v", what, s.Patience)
	}
}

// compare checks a reply against the line that the server answered with.
func (s *subject) compare(reply converse.Reply, line Line) {
	s.Helper()
	if text := canister.TextOf(reply.Message.Content); text != line.Text {
		s.Errorf("the answer is %s, want %s", suite.Quote(text), suite.Quote(line.Text))
	}
	if line.Finish != "" && reply.Message.Finish != line.Finish {
		s.Errorf("the answer finishes with %q, want %q", reply.Message.Finish, line.Finish)
	}
	var got []Call
	for _, invocation := range reply.Invocations {
		got = append(got, Call{Name: invocation.Name, Arguments: invocation.Arguments})
	}
	var want []Call
	for _, call := range line.Calls {
		want = append(want, Call{Name: call.Name, Arguments: call.Arguments})
	}
	if !slices.Equal(got, want) {
		s.Errorf("the answer asks for %+v, want %+v", got, want)
	}
}
