// SPDX-License-Identifier: Apache-2.0

package grpctooltest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	. "github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// plain is a third-party client that uses only our messages.
func plain(t *testing.T, fake *Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(fake.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func call(t *testing.T, conn *grpc.ClientConn, tool string) (*toolspb.ToolCallResponse, error) {
	t.Helper()
	return toolspb.NewMcpToolServiceClient(conn).CallTool(within(t), &toolspb.ToolCallRequest{ToolName: tool, ArgumentsJson: "{}"})
}

// What arrived is remembered as it came.
func TestCalls(t *testing.T) {
	fake := New(t, nil)
	farmer, other := fake.Returns("get_farmer", "Wanjiku"), fake.Returns("other", nil)
	ctx := metadata.AppendToOutgoingContext(within(t), "X-User", "7")
	client := toolspb.NewMcpToolServiceClient(plain(t, fake))
	response, err := client.CallTool(ctx, &toolspb.ToolCallRequest{
		ToolName: "get_farmer", ArgumentsJson: `{"b": 1, "a": 12345678901234567890}`,
		TraceId: "trace", CallerAgentId: "advisor", IdempotencyKey: "key",
	})
	if err != nil || !response.Success || response.ResultJson != `"Wanjiku"` {
		t.Fatalf("got %v, %v", response, err)
	}
	if _, err := call(t, plain(t, fake), "nobody"); err != nil {
		t.Fatal(err)
	}
	got := farmer.Calls()
	if len(got) != 1 || len(fake.Calls()) != 2 || len(other.Calls()) != 0 || farmer.Ran() != 1 || other.Ran() != 0 {
		t.Fatalf("of the tool: %v, in all: %v", got, fake.Calls())
	}
	c := got[0]
	deadline := time.Until(c.Deadline)
	if c.Service != grpctool.Service || c.Tool != "get_farmer" || c.TraceID != "trace" || c.CallerAgentID != "advisor" || c.IdempotencyKey != "key" ||
		strings.Join(c.Metadata["x-user"], ",") != "7" || deadline <= 0 || deadline > time.Minute {
		t.Errorf("the call was %+v", c)
	}
	farmer.Expect(t, `{"a":12345678901234567890,"b":1}`)
	other.Expect(t)
	for _, wrong := range [][]string{nil, {`{"a":12345678901234567891,"b":1}`}, {`{}`, `{}`}} {
		if complains := new(complaints); true {
			farmer.Expect(complains, wrong...)
			if complains.n != 1 {
				t.Errorf("Expect does not complain of %q", wrong)
			}
		}
	}
}

// complaints counts the errors of a test.
type complaints struct {
	testing.TB
	n int
}

func (c *complaints) Helper()               {}
func (c *complaints) Errorf(string, ...any) { c.n++ }

// The result of a tool's function is converted as the contract requires.
func TestErrors(t *testing.T) {
	fake := New(t, nil)
	conn := plain(t, fake)
	for name, c := range map[string]struct {
		err    error
		status codes.Code
		code   toolspb.ErrorCode
		words  string
	}{
		"any":         {errors.New("no luck"), codes.OK, toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, "no luck"},
		"arguments":   {invoker.Failf(invoker.InvalidArguments, "too many"), codes.OK, toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS, "too many"},
		"unavailable": {invoker.Failf(invoker.Unavailable, "later"), codes.OK, toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE, "later"},
		"no tool":     {invoker.Failf(invoker.ToolNotFound, "gone"), codes.OK, toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND, "gone"},
		"conflict":    {invoker.Failf(invoker.Conflict, "twice"), codes.OK, toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, "twice"},
		"status":      {status.Error(codes.DataLoss, "lost"), codes.DataLoss, 0, "lost"},
		"cancelled":   {fmt.Errorf("stopped: %w", context.Canceled), codes.Canceled, 0, "canceled"},
	} {
		fake.Does(name, func(context.Context, Call) (any, error) { return nil, c.err })
		response, err := call(t, conn, name)
		if status.Code(err) != c.status || response.GetSuccess() || response.GetErrorCode() != c.code ||
			!strings.Contains(response.GetErrorMessage()+status.Convert(err).Message(), c.words) {
			t.Errorf("%s came to %v, %v", name, response, err)
		}
	}
	fake.Returns("no JSON", make(chan int))
	fake.Does("panic", func(context.Context, Call) (any, error) { panic("ouch") })
	if response, err := call(t, conn, "no JSON"); err != nil || response.ErrorCode != toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR {
		t.Errorf("a result that is no JSON: %v, %v", response, err)
	}
	if _, err := call(t, conn, "panic"); status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "ouch") {
		t.Errorf("a panic: %v", err)
	}
	if response, err := call(t, conn, "nobody"); err != nil || response.ErrorCode != toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND {
		t.Errorf("no such tool: %v, %v", response, err)
	}
}

func TestListing(t *testing.T) {
	fake := New(t, &Options{Services: []string{grpctool.OriginalService}})
	fake.Returns("a", 1).Define(func(d *toolspb.ToolDefinition) { d.Category = "query" })
	fake.Returns("b", 2)
	fake.Offer(ensembletest.Echo())
	names := func(category string) string {
		options := fake.ClientOptions()
		options.Category = category
		connection, err := grpctool.Source(fake.Address(), options).Open(within(t))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close(within(t))
		listing, err := connection.List(within(t))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, inv := range listing.Invokers {
			names = append(names, inv.Definition().Name)
		}
		return strings.Join(names, " ")
	}
	if got := names(""); got != "a b echo" {
		t.Errorf("the tools are %q", got)
	}
	if got := names("query"); got != "a" {
		t.Errorf("the tools of a category are %q", got)
	}
	fake.Returns("b", 3)
	fake.Remove("a")
	if got := names(""); got != "b echo" || fake.Lists() != 3 {
		t.Errorf("after a change the tools are %q, in %d listings", got, fake.Lists())
	}
	if _, err := call(t, plain(t, fake), "b"); status.Code(err) != codes.Unimplemented {
		t.Errorf("by the other name of the service: %v", err)
	}
	if err := plain(t, fake).Invoke(within(t), "/"+grpctool.OriginalService+"/Nonsense", &toolspb.ListToolsRequest{},
		&toolspb.ListToolsResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that there is not: %v", err)
	}
}

// Invokers of ensembletest answer over the wire, and stand still there too.
func TestOffer(t *testing.T) {
	fake := New(t, nil)
	gate := ensembletest.NewGate("gate", false)
	fake.Offer(gate, ensembletest.Fails("fails", invoker.Failf(invoker.InvalidArguments, "no")))
	conn := plain(t, fake)
	answered := make(chan string, 1)
	go func() {
		response, err := toolspb.NewMcpToolServiceClient(conn).CallTool(context.Background(),
			&toolspb.ToolCallRequest{ToolName: "gate", ArgumentsJson: `{"a":1}`, IdempotencyKey: "key"})
		answered <- fmt.Sprint(response.GetResultJson(), err)
	}()
	if begun := <-gate.Begun; begun.ID != "key" || string(begun.Arguments) != `{"a":1}` {
		t.Errorf("the call was %+v", begun)
	}
	gate.Release("now")
	if got := <-answered; got != `"now"<nil>` {
		t.Errorf("it answered %s", got)
	}
	if response, err := call(t, conn, "fails"); err != nil ||
		response.ErrorCode != toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS || response.ErrorMessage != "no" {
		t.Errorf("a failure: %v, %v", response, err)
	}
}

// Rules strike at the occasions that they name.
func TestOccasions(t *testing.T) {
	for want, rule := range map[string]Rule{
		"x.....": {}, ".x....": {Nth: 2}, ".xxx..": {Nth: 2, Times: 3}, "..xxxx": {Nth: 3, Times: Always}, "......": {Tool: "another"},
	} {
		fake := New(t, nil)
		fake.Returns("tool", 1)
		rule.Fault, rule.At, rule.Code = "status", "before-effect", codes.Aborted
		if err := fake.Script(rule); err != nil {
			t.Fatal(err)
		}
		conn, got := plain(t, fake), ""
		for range 6 {
			if _, err := call(t, conn, "tool"); status.Code(err) == codes.Aborted {
				got += "x"
			} else if err == nil {
				got += "."
			}
		}
		if got != want || fake.Struck() != strings.Count(want, "x") {
			t.Errorf("%+v struck as %s, %d times, want %s", rule, got, fake.Struck(), want)
		}
	}
}

// Several rules strike at one occasion, in their order, until one ends it.
func TestSeveralRules(t *testing.T) {
	fake := New(t, nil)
	tool := fake.Returns("tool", 1)
	err := fake.Script(Rule{Fault: "goaway", At: "after-effect"}, Rule{Fault: "status", At: "after-effect", Code: codes.Aborted},
		Rule{Fault: "status", At: "after-effect", Code: codes.DataLoss, Nth: 2})
	if err != nil {
		t.Fatal(err)
	}
	conn := plain(t, fake)
	for _, want := range []codes.Code{codes.Aborted, codes.DataLoss, codes.OK} {
		if _, err := call(t, conn, "tool"); status.Code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if tool.Ran() != 3 {
		t.Errorf("the tool ran %d times", tool.Ran())
	}
}

// A rule that can never strike is an error, and leaves the script as it was.
func TestRulesThatCannotStrike(t *testing.T) {
	fake := New(t, nil)
	fake.Returns("tool", 1)
	if err := fake.Script(Rule{Fault: "status", At: "before-effect", Code: codes.Aborted}); err != nil {
		t.Fatal(err)
	}
	for want, rule := range map[string]Rule{
		`unknown fault "nonsense"`: {Fault: "nonsense", At: "list"},
		`not at "connect"`:         {Fault: "status", At: "connect"},
		`not at ""`:                {Fault: "cut"},
		"needs Options.TLS":        {Fault: "expired", At: "connect"},
		"no tool is called":        {Fault: "cut", At: "list", Tool: "tool"},
		`"cut" has a negative`:     {Fault: "cut", At: "list", Nth: -1},
		`"slow" has a negative`:    {Fault: "slow", At: "list", Delay: -1},
		`"half" has a negative`:    {Fault: "half", At: "list", Times: -2},
		`"bomb" has a negative`:    {Fault: "bomb", At: "list", Size: -1},
		`"many-tools" has a neg`:   {Fault: "many-tools", At: "list", Count: -1},
	} {
		if err := fake.Script(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", rule, err, want)
		}
		if _, err := Start(&Options{Rules: []Rule{rule}}); err == nil {
			t.Errorf("%+v: a server starts with it", rule)
		}
	}
	if _, err := call(t, plain(t, fake), "tool"); status.Code(err) != codes.Aborted {
		t.Errorf("the script before is gone: %v", err)
	}
}

// A server goes off the air and comes back at the same address.
func TestLife(t *testing.T) {
	fake := New(t, nil)
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	fake.Does("long", func(ctx context.Context, _ Call) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	})
	fake.Returns("tool", 1)
	address, conn := fake.Address(), plain(t, fake)
	failed := make(chan error, 1)
	go func() {
		_, err := toolspb.NewMcpToolServiceClient(conn).CallTool(context.Background(), &toolspb.ToolCallRequest{ToolName: "long"})
		failed <- err
	}()
	<-begun
	if fake.Connections() != 1 {
		t.Errorf("there are %d connections", fake.Connections())
	}
	fake.Stop()
	fake.Stop()
	if len(ended) != 1 || fake.Connections() != 0 {
		t.Errorf("%d calls have ended, %d connections are left", len(ended), fake.Connections())
	}
	if err := <-failed; status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was under way: %v", err)
	}
	if _, err := call(t, plain(t, fake), "tool"); status.Code(err) != codes.Unavailable {
		t.Errorf("off the air: %v", err)
	}
	for range 2 {
		if err := fake.Start(); err != nil || fake.Address() != address {
			t.Fatalf("at %s, before at %s: %v", fake.Address(), address, err)
		}
	}
	if _, err := call(t, plain(t, fake), "tool"); err != nil {
		t.Errorf("back on the air: %v", err)
	}
	fake.Close()
	fake.Close()
}

// A connection that is cut is reset, as by a host that knows nothing of it.
func TestCutIsAReset(t *testing.T) {
	fake := New(t, nil)
	conn, err := net.Dial("tcp", fake.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for ctx := within(t); fake.Connections() == 0 && ctx.Err() == nil; {
		<-time.After(time.Millisecond)
	}
	fake.DropConnections()
	if _, err := io.ReadAll(conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
}

// A server that shuts down gracefully answers running calls.
func TestWindUp(t *testing.T) {
	fake := New(t, nil)
	gate := ensembletest.NewGate("gate", true)
	fake.Offer(gate)
	connection, err := grpctool.Source(fake.Address(), fake.ClientOptions()).Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(within(t))
	answered := make(chan error, 1)
	go func() { answered <- invoke(connection) }()
	<-gate.Begun
	wound := make(chan struct{})
	go func() {
		fake.WindUp()
		close(wound)
	}()
	gate.Release("done")
	if err := <-answered; err != nil {
		t.Errorf("the call: %v", err)
	}
	<-wound
	<-connection.Lost()
	fake.WindUp()
}

func invoke(connection ensemble.Connection) error {
	listing, err := connection.List(context.Background())
	if err != nil {
		return err
	}
	output, err := listing.Invokers[0].Invoke(context.Background(), &invoker.Call{})
	if err == nil && canister.TextOf(output.Content) != "done" {
		return fmt.Errorf("got %v", output)
	}
	return err
}

// Closing ends whatever a fault is doing.
func TestCloseEndsFaults(t *testing.T) {
	for _, info := range Faults() {
		for _, at := range info.Places {
			fake, err := Start(&Options{TLS: true, Rules: []Rule{{Fault: info.Fault, At: at, Times: Always, Delay: time.Hour, Count: 1, Size: 100}}})
			if err != nil {
				t.Fatal(err)
			}
			fake.Returns("tool", 1)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			var client sync.WaitGroup
			client.Go(func() {
				connection, err := grpctool.Source(fake.Address(), fake.ClientOptions()).Open(ctx)
				if err == nil {
					_ = invoke(connection)
					_ = connection.Close(ctx)
				}
			})
			for fake.Struck() == 0 && ctx.Err() == nil {
				<-time.After(time.Millisecond)
			}
			closed := make(chan struct{})
			go func() {
				fake.Close()
				close(closed)
			}()
			select {
			case <-closed:
			case <-ctx.Done():
				t.Fatalf("%s at %s: the server does not close", info.Fault, at)
			}
			if fake.Struck() == 0 || fake.Connections() != 0 {
				t.Errorf("%s at %s: it struck %d times, and %d connections are left", info.Fault, at, fake.Struck(), fake.Connections())
			}
			cancel()
			client.Wait()
		}
	}
}
