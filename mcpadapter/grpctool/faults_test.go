// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	. "github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc/codes"
)

// faultBound is the time limit for each step of a fault test.
const faultBound = 20 * time.Second

// stage is a roster of two servers, one of them faulty.
type stage struct {
	t         *testing.T
	ctx       context.Context
	fake      *Server
	pay, look *Tool // one has an effect, the other is read-only
	fine      *Tool // of the other server
	roster    *ensemble.Roster
}

// newStage has the roster closed when the test ends, and looks whether anything
// of it is left. A call of the server that misbehaves has so much time.
func newStage(t *testing.T, patience time.Duration) *stage {
	t.Helper()
	t.Cleanup(func() { noneLeft(t) })
	return newStageBesideOthers(t, patience)
}

// newStageBesideOthers is newStage for tests that run at the same time.
func newStageBesideOthers(t *testing.T, patience time.Duration) *stage {
	t.Helper()
	s := &stage{t: t, fake: New(t, nil)}
	ctx, cancel := context.WithTimeout(context.Background(), 2*faultBound)
	s.ctx = ctx
	s.pay, s.look = s.fake.Returns("pay", "paid"), s.fake.Returns("look", "seen")
	s.look.Define(func(d *toolspb.ToolDefinition) { d.Hints = &toolspb.ToolHints{ReadOnly: true} })
	other := New(t, nil)
	s.fine = other.Returns("fine", "fine")
	client := s.fake.ClientOptions()
	client.MaxMessage = 8 << 20
	var err error
	s.roster, err = ensemble.NewRoster(
		ensemble.New("faulty", grpctool.Source(s.fake.Address(), client), &ensemble.Options{
			ConnectTimeout: max(patience, 2*time.Second), CallTimeout: patience, KeepAlive: time.Second,
			Restart: ensemble.Restart{Policy: ensemble.RestartAlways, Tries: -1},
		}),
		ensemble.New("other", grpctool.Source(other.Address(), other.ClientOptions()), nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		if err := s.roster.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		for server, n := range map[string]func() int{"the faulty server": s.fake.Connections, "the other server": other.Connections} {
			eventually(t, "the connections of "+server+" end", func() bool { return n() == 0 })
		}
	})
	return s
}

// noneLeft fails if there is a goroutine of a client.
func noneLeft(t *testing.T) {
	t.Helper()
	eventually(t, "the goroutines of the client end", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, of := range []string{"grpctool.(*connection)", "transport.(*http2Client)", "grpc.(*ClientConn)"} {
			if strings.Contains(string(stacks), of) {
				return false
			}
		}
		return true
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(faultBound); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %s", what, faultBound)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (s *stage) tool(name string) *ensemble.Tool {
	s.t.Helper()
	var found *ensemble.Tool
	eventually(s.t, "the tool "+name, func() bool {
		catalog, err := s.roster.Catalog(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		found, _ = catalog.Find(name)
		return found != nil
	})
	return found
}

// call calls a tool, in bounded time, and returns the code that it failed with.
func (s *stage) call(tool *ensemble.Tool) (invoker.Code, *invoker.Failure) {
	s.t.Helper()
	began := time.Now()
	_, err := tool.Invoke(s.ctx, &invoker.Call{ID: "call-1"})
	if took := time.Since(began); took > faultBound {
		s.t.Errorf("the call took %s", took)
	}
	failure := invoker.AsFailure(err)
	if failure == nil {
		return "", nil
	}
	return failure.Code, failure
}

// othersServe checks that the other server does not suffer.
func (s *stage) othersServe() {
	s.t.Helper()
	if code, failure := s.call(s.tool("other__fine")); code != "" {
		s.t.Errorf("the other server: %v", failure)
	}
}

// recovers checks that the server is of use again: each call that found it ran
// once.
func (s *stage) recovers() {
	s.t.Helper()
	if err := s.fake.Start(); err != nil {
		s.t.Fatal(err)
	}
	before := s.pay.Ran()
	var failure *invoker.Failure
	eventually(s.t, "a call of the server that recovered", func() bool {
		var code invoker.Code
		if code, failure = s.call(s.tool("faulty__pay")); code == "" {
			return true
		}
		if code != invoker.Unavailable || s.pay.Ran() != before {
			s.t.Fatalf("a call of the server that recovered: %v", failure)
		}
		return false
	})
	if ran := s.pay.Ran(); ran != before+1 {
		s.t.Errorf("one call of the server that recovered ran %d times", ran-before)
	}
}

// callFault is the expected outcome of a call with a fault at some point.
type callFault struct {
	fault Fault
	at    Place
	want  invoker.Code // of a tool that has an effect; empty is success
	ran   int
	rule  Rule // with the rest
	calls int  // that arrived; default 1
	dead  bool // the connection is of no use afterwards
}

// callFaults are all faults at all places of a call.
var callFaults = []callFault{
	{fault: "silence", at: "before-effect", want: invoker.Timeout},
	{fault: "silence", at: "after-effect", want: invoker.Timeout, ran: 1},
	{fault: "slow", at: "before-effect", ran: 1, rule: Rule{Delay: 300 * time.Millisecond}},
	{fault: "slow", at: "after-effect", ran: 1, rule: Rule{Delay: 300 * time.Millisecond}},
	{fault: "slow", at: "after-effect", want: invoker.Timeout, ran: 1, rule: Rule{Delay: time.Minute}},
	{fault: "drip", at: "after-effect", ran: 1, rule: Rule{Delay: time.Millisecond}},
	{fault: "drip", at: "after-effect", want: invoker.Timeout, ran: 1, dead: true, rule: Rule{Delay: time.Second}},
	{fault: "cut", at: "before-effect", want: invoker.OutcomeUnknown},
	{fault: "cut", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "die", at: "before-effect", want: invoker.OutcomeUnknown},
	{fault: "die", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "half", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "half-then-silence", at: "after-effect", want: invoker.Timeout, ran: 1, dead: true},
	{fault: "bad-gateway", at: "before-effect", want: invoker.OutcomeUnknown},
	{fault: "bad-gateway", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "html", at: "before-effect", want: invoker.OutcomeUnknown},
	{fault: "html", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},

	{fault: "huge-headers", at: "after-effect", ran: 1},
	{fault: "huge-result", at: "after-effect", want: invoker.ResultTooLarge, ran: 1},
	{fault: "bomb", at: "after-effect", want: invoker.ResultTooLarge, ran: 1, rule: Rule{Size: 16 << 20}},
	{fault: "broken-message", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},

	{fault: "status", at: "before-effect", want: invoker.OutcomeUnknown}, // UNAVAILABLE
	{fault: "status", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "status", at: "before-effect", want: invoker.Protocol, rule: Rule{Code: codes.Unimplemented}},
	{fault: "status", at: "before-effect", want: invoker.Unauthorized, rule: Rule{Code: codes.Unauthenticated}},
	{fault: "status", at: "before-effect", want: invoker.Unavailable, rule: Rule{Code: codes.ResourceExhausted}},
	{fault: "status", at: "after-effect", want: invoker.ExecutionFailed, ran: 1, rule: Rule{Code: codes.Unknown}},
	{fault: "status", at: "after-effect", want: invoker.Timeout, ran: 1, rule: Rule{Code: codes.DeadlineExceeded}},
	{fault: "status", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1, rule: Rule{Code: codes.Canceled}},
	{fault: "status", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1, rule: Rule{Code: codes.Internal}},

	{fault: "reset", at: "before-effect", want: invoker.OutcomeUnknown}, // CANCEL
	{fault: "reset", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1},
	{fault: "reset", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1, rule: Rule{Reason: 2}},   // INTERNAL_ERROR
	{fault: "reset", at: "after-effect", want: invoker.OutcomeUnknown, ran: 1, rule: Rule{Reason: 0xb}}, // ENHANCE_YOUR_CALM
	// REFUSED_STREAM says that nothing was done: gRPC sends the call again.
	{fault: "reset", at: "before-effect", ran: 1, calls: 2, rule: Rule{Reason: 7}},
	{fault: "goaway", at: "before-effect", ran: 1},
	{fault: "goaway", at: "after-effect", ran: 1},
	{fault: "goaway-unseen", at: "before-effect", ran: 1, calls: 2},
}

// TestFaultsOfCalls: a fault fails only its call, and the error says what is known about
// it. Calls that may have had an effect are not repeated, read-only ones at most once;
// the other server and the next call are not affected.
func TestFaultsOfCalls(t *testing.T) {
	t.Run("calls", func(t *testing.T) { // returns when all of them have
		for _, c := range callFaults {
			t.Run(c.name(), func(t *testing.T) { c.play(t) })
		}
	})
	noneLeft(t)
}

func (c *callFault) play(t *testing.T) {
	t.Parallel()
	patience := faultBound
	if c.want == invoker.Timeout {
		patience = time.Second
	}
	s := newStageBesideOthers(t, patience)
	pay, lists := s.tool("faulty__pay"), s.fake.Lists()
	if err := s.fake.Script(c.strikes()); err != nil {
		t.Fatal(err)
	}
	code, failure := s.call(pay)
	if code != c.want {
		t.Errorf("the call came to %q, want %q: %v", code, c.want, failure)
	}
	if ran, calls := s.pay.Ran(), len(s.pay.Calls()); ran != c.ran || calls != max(c.calls, 1) {
		t.Errorf("it arrived %d times and ran %d times, want %d and %d", calls, ran, max(c.calls, 1), c.ran)
	}
	if s.fake.Struck() != 1 {
		t.Errorf("the fault struck %d times", s.fake.Struck())
	}
	s.othersServe()
	if c.dead {
		eventually(t, "pings notice that nothing comes any more", func() bool { return s.fake.Lists() > lists })
	}
	s.recovers()
}

func (c *callFault) name() string {
	name := string(c.fault) + "/" + string(c.at)
	if c.rule.Code != 0 {
		name += "/" + c.rule.Code.String()
	}
	return name
}

func (c *callFault) strikes() Rule {
	rule := c.rule
	rule.Fault, rule.At, rule.Tool = c.fault, c.at, "pay"
	return rule
}

// Each fault is tested at each point of a call where it can occur.
func TestFaultsOfCallsAreAll(t *testing.T) {
	for _, info := range Faults() {
		for _, at := range []Place{"before-effect", "after-effect"} {
			tested := slices.ContainsFunc(callFaults, func(c callFault) bool { return c.fault == info.Fault && c.at == at })
			if could := slices.Contains(info.Places, at); could != tested {
				t.Errorf("%s at %s: it can strike: %t, and is tested: %t", info.Fault, at, could, tested)
			}
		}
	}
}
