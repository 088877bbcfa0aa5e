// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
)

// Call is one request of CallTool as it arrived.
type Call struct {
	// Service is the name under which the server was asked.
	Service string
	// Tool is the tool's name, and Arguments are what the client sent as its
	// arguments, a JSON object unless it is wrong.
	Tool, Arguments string
	// TraceID, CallerAgentID and IdempotencyKey are fields of the request.
	TraceID, CallerAgentID, IdempotencyKey string
	// Metadata is what came with the request, in lower case.
	Metadata metadata.MD
	// Deadline is when the client stops to wait; zero if it does not.
	Deadline time.Time
}

// record is what was asked of a server.
type record struct {
	mu    sync.Mutex
	calls []Call
	lists int
}

func (r *record) call(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

func (r *record) list() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists++
}

// Calls returns the calls that arrived, of all tools and of those that there are
// not, in the order in which they came.
func (s *Server) Calls() []Call {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return slices.Clone(s.record.calls)
}

// Lists returns how often the tools were asked for.
func (s *Server) Lists() int {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.lists
}

// Calls returns the calls of the tool that arrived, in the order in which they
// came. That one arrived does not mean that the tool ran: see Ran.
func (t *Tool) Calls() []Call {
	return slices.DeleteFunc(t.server.Calls(), func(c Call) bool { return c.Tool != t.name })
}

// Expect reports an error unless the tool was called with just these arguments,
// as JSON values, in this order.
func (t *Tool) Expect(test testing.TB, arguments ...string) {
	test.Helper()
	var got, want []string
	for _, call := range t.Calls() {
		got = append(got, canonical(call.Arguments))
	}
	for _, each := range arguments {
		want = append(want, canonical(each))
	}
	if !slices.Equal(got, want) {
		test.Errorf("%s was called with %q, want %q", t.name, got, want)
	}
}

// canonical is JSON in a form that can be compared; what is none stays as it is.
func canonical(text string) string {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return text
	}
	form, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(form)
}
