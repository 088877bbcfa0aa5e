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

// Call is one CallTool request as it arrived.
type Call struct {
	// Service is the service name in the request.
	Service string
	// Tool is the tool's name. Arguments are the arguments that the client sent, a JSON
	// object in a valid request.
	Tool, Arguments string
	// TraceID, CallerAgentID and IdempotencyKey are fields of the request.
	TraceID, CallerAgentID, IdempotencyKey string
	// Metadata is the metadata of the request; keys are lower case.
	Metadata metadata.MD
	// Deadline is when the client stops waiting; zero if it does not.
	Deadline time.Time
}

// record holds the requests that a server received.
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

// Calls returns the calls that arrived, in order of arrival, including calls of unknown
// tools.
func (s *Server) Calls() []Call {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return slices.Clone(s.record.calls)
}

// Lists returns how often the tools were listed.
func (s *Server) Lists() int {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.lists
}

// Calls returns the calls of the tool that arrived, in order of arrival. A call that
// arrived did not necessarily run: see Ran.
func (t *Tool) Calls() []Call {
	return slices.DeleteFunc(t.server.Calls(), func(c Call) bool { return c.Tool != t.name })
}

// Expect reports an error unless the tool was called with exactly these arguments,
// compared as JSON values, in this order.
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

// canonical returns JSON in a form that can be compared. It returns other text
// unchanged.
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
