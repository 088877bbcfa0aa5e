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

// Harness is a model under test, with the facts that the suite needs.
type Harness struct {
	// Model is the model. The server behind it must answer as [TestModel] describes.
	Model converse.Model
	// Received, if not nil, returns the latest request that the server received: the
	// bytes of its body, or an equivalent text.
	Received func() string
	// Whole means that the model does not stream. Its deltas, if any, come together with
	// the reply.
	Whole bool
	// Patience is how long the suite waits for things that should happen soon; default 30
	// s.
	Patience time.Duration
}

// TestModel runs the suite that every [converse.Model] must pass. It calls newHarness for
// each case; newHarness must clean up with t.Cleanup. Each case is a subtest, which logs
// its rule if it fails.
//
// The server behind the model is scripted. It answers a request whose history has n
// assistant messages with lines[n]. Requests can be repeated, and can come from several
// conversations at the same time:
//
//   - Text is the answer. If Finish is refusal, it is sent in the API's form for
//     refusals. It is streamed in several pieces if the model streams.
//   - Calls are sent in this order, with unchanged names and arguments. An empty
//     CallID is sent as empty or left out, and equal ones are sent as equal, as far
//     as the API allows it.
//   - Finish is sent as the API's value for it. If it is empty, the server sends the
//     value that fits the rest of the line.
//   - Usage is reported unchanged, and not at all if it is nil.
//   - Wait, if not nil, stops the server from sending anything after Text. It is
//     never closed: the server waits until the client disconnects.
//   - Err is a [*converse.ModelError] with a Message, a Status and Retryable. Without
//     Text, the server rejects the request with this status and message, on every
//     attempt. With Text, the answer breaks off after it, and only Retryable matters.
//
// The other fields of the lines are not set. A model that retries should be configured to
// retry quickly or not at all.
func TestModel(t *testing.T, newHarness func(t *testing.T, lines []Line) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, c.lines)
			s := &subject{T: t, Harness: h, lines: c.lines}
			s.Patience = cmp.Or(h.Patience, 30*time.Second)
			defer suite.Rule(t, c.rule)
			c.check(s)
		})
	}
}

// testCase is one rule with its check.
type testCase struct {
	name, rule string
	lines      []Line
	check      func(*subject)
}

// subject is the harness of a running case.
type subject struct {
	*testing.T
	Harness
	lines []Line
	ids   atomic.Int64
}

// newID returns a new ID.
func (s *subject) newID() string { return fmt.Sprintf("made-%d", s.ids.Add(1)) }

// context returns a context that ends after Patience.
func (s *subject) context() context.Context { return suite.Context(s.T, s.Patience) }

// request returns a request that the server answers with line n.
func (s *subject) request(n int) *converse.Request {
	return &converse.Request{History: historyOf(n), Tools: tools(), NewID: s.newID}
}

// exchanged is the outcome of an exchange.
type exchanged struct {
	text    string // text of the deltas
	deltas  int    // deltas with text
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
		case converse.Retry, converse.Fallback:
		default:
			x.err = fmt.Errorf("the model yields a %T", event)
		}
	}
	return x
}

// answer returns the outcome of an exchange that must succeed.
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

// failure returns the error of an exchange that must fail soon.
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

// soon calls f and fails the test if that takes longer than Patience.
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

// compare compares a reply with the line that the server sent.
func (s *subject) compare(reply converse.Reply, line Line) {
	s.Helper()
	if text := canister.TextOf(reply.Message.Content); text != line.Text {
		s.Errorf("the answer is %s, want %s", suite.Quote(text), suite.Quote(line.Text))
	}
	if line.Finish != "" && reply.Message.Finish != line.Finish {
		s.Errorf("the finish is %q, want %q", reply.Message.Finish, line.Finish)
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
