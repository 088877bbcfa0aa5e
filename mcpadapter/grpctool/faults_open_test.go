// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	. "github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"google.golang.org/grpc/codes"
)

// openFault is the expected outcome of connecting with a fault.
type openFault struct {
	rule  Rule
	want  invoker.Code // empty is success
	says  string       // in the error
	lists int          // how often the tools were asked for
}

// openFaults are all faults at all places before there is a connection.
var openFaults = []openFault{
	{rule: Rule{Fault: "silence", At: "connect"}, want: invoker.Timeout},
	{rule: Rule{Fault: "slow", At: "connect", Delay: 200 * time.Millisecond}, lists: 1},
	{rule: Rule{Fault: "drip", At: "connect", Delay: time.Microsecond}, lists: 1},
	{rule: Rule{Fault: "drip", At: "connect", Delay: time.Second}, want: invoker.Timeout},
	{rule: Rule{Fault: "cut", At: "connect"}, want: invoker.Unavailable},
	{rule: Rule{Fault: "die", At: "connect"}, want: invoker.Unavailable},
	{rule: Rule{Fault: "junk", At: "connect"}, want: invoker.Unavailable},
	{rule: Rule{Fault: "bad-gateway", At: "connect"}, want: invoker.Unavailable, says: "HTTP/1.1"},
	{rule: Rule{Fault: "expired", At: "connect"}, want: invoker.Unavailable, says: "expired"},
	{rule: Rule{Fault: "other-name", At: "connect"}, want: invoker.Unavailable, says: "certificate"},
	{rule: Rule{Fault: "self-signed", At: "connect"}, want: invoker.Unavailable, says: "unknown authority"},

	{rule: Rule{Fault: "silence", At: "list"}, want: invoker.Timeout, lists: 1},
	{rule: Rule{Fault: "slow", At: "list", Delay: 200 * time.Millisecond}, lists: 1},
	{rule: Rule{Fault: "drip", At: "list", Delay: time.Microsecond}, lists: 1},
	{rule: Rule{Fault: "cut", At: "list"}, want: invoker.Unavailable, lists: 1},
	{rule: Rule{Fault: "die", At: "list"}, want: invoker.Unavailable, lists: 1},
	{rule: Rule{Fault: "half", At: "list"}, want: invoker.Unavailable, lists: 1},
	{rule: Rule{Fault: "half-then-silence", At: "list"}, want: invoker.Timeout, lists: 1},
	{rule: Rule{Fault: "bad-gateway", At: "list"}, want: invoker.Unavailable, says: "502", lists: 1},
	{rule: Rule{Fault: "html", At: "list"}, want: invoker.Unavailable, says: "text/html", lists: 1},
	{rule: Rule{Fault: "huge-headers", At: "list"}, lists: 1},
	{rule: Rule{Fault: "huge-result", At: "list"}, want: invoker.ResultTooLarge, lists: 1},
	{rule: Rule{Fault: "bomb", At: "list", Size: 16 << 20}, want: invoker.ResultTooLarge, lists: 1},
	{rule: Rule{Fault: "broken-message", At: "list"}, want: invoker.Unavailable, says: "unmarshal", lists: 1},
	{rule: Rule{Fault: "many-tools", At: "list"}, lists: 1},
	{rule: Rule{Fault: "odd-tools", At: "list"}, lists: 1},
	{rule: Rule{Fault: "status", At: "list", Text: "no backend"}, want: invoker.Unavailable, says: "no backend", lists: 1},
	{rule: Rule{Fault: "status", At: "list", Code: codes.Unauthenticated}, want: invoker.Unauthorized, lists: 1},
	{rule: Rule{Fault: "status", At: "list", Code: codes.ResourceExhausted}, want: invoker.Unavailable, lists: 1},
	{rule: Rule{Fault: "status", At: "list", Code: codes.Unimplemented}, lists: 2}, // by one name, and then by the other
	{rule: Rule{Fault: "status", At: "list", Code: codes.Unimplemented, Times: 2}, want: invoker.Protocol, lists: 2},
	{rule: Rule{Fault: "reset", At: "list"}, want: invoker.Unavailable, lists: 1},
	{rule: Rule{Fault: "reset", At: "list", Reason: 7}, lists: 2}, // REFUSED_STREAM
	{rule: Rule{Fault: "goaway", At: "list"}, lists: 1},
	{rule: Rule{Fault: "goaway-unseen", At: "list"}, lists: 2},
}

// TestFaultsOfConnecting: an attempt to connect ends in time, says why, and
// leaves nothing; the next one is not its worse for it.
func TestFaultsOfConnecting(t *testing.T) {
	t.Run("connections", func(t *testing.T) { // returns when all of them have
		for _, c := range openFaults {
			t.Run(c.name(), func(t *testing.T) { c.play(t) })
		}
	})
	noneLeft(t)
}

func (c *openFault) play(t *testing.T) {
	t.Parallel()
	fake := New(t, &Options{TLS: slices.Contains([]Fault{"expired", "other-name", "self-signed"}, c.rule.Fault)})
	fake.Returns("pay", "paid")
	if err := fake.Script(c.rule); err != nil {
		t.Fatal(err)
	}
	options := fake.ClientOptions()
	options.MaxMessage = 8 << 20
	source := grpctool.Source(fake.Address(), options)
	patience := faultBound
	if c.want == invoker.Timeout {
		patience = time.Second
	}
	c.check(t, source, patience)
	if lists := fake.Lists(); lists != c.lists {
		t.Errorf("the tools were asked for %d times, want %d", lists, c.lists)
	}
	eventually(t, "the connections end", func() bool { return fake.Connections() == 0 })

	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	if output, err := tool(t, opened(t, source), "pay").Invoke(within(t), &invoker.Call{}); err != nil {
		t.Errorf("over the next connection: %v, %v", output, err)
	}
}

func (c *openFault) name() string {
	name := string(c.rule.Fault) + "/" + string(c.rule.At)
	if c.rule.Code != 0 {
		name += "/" + c.rule.Code.String()
	}
	return name
}

// check opens the source, and closes the connection.
func (c *openFault) check(t *testing.T, source ensemble.Source, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	connection, err := source.Open(ctx)
	if took := time.Since(began); took > patience+faultBound {
		t.Errorf("Open took %s", took)
	}
	var code invoker.Code
	if err != nil {
		code = invoker.AsFailure(err).Code
	} else if err := connection.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	if code != c.want || err != nil && !strings.Contains(err.Error(), c.says) {
		t.Errorf("Open: %q, want %q with %q: %v", code, c.want, c.says, err)
	}
}

// Each fault is tested at each point where it can occur before there is a connection.
func TestFaultsOfConnectingAreAll(t *testing.T) {
	for _, info := range Faults() {
		for _, at := range []Place{"connect", "list"} {
			tested := slices.ContainsFunc(openFaults, func(c openFault) bool { return c.rule.Fault == info.Fault && c.rule.At == at })
			if could := slices.Contains(info.Places, at); could != tested {
				t.Errorf("%s at %s: it can strike: %t, and is tested: %t", info.Fault, at, could, tested)
			}
		}
	}
}
