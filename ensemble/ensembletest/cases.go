// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// cases are the rules that every source must follow.
var cases = []testCase{
	{"Open/fresh", "each Open makes a separate connection, and closing one does not affect the others", nothing, openFresh},
	{"Open/outlives", "the connection outlives the context of Open", nothing, openOutlives},
	{"Open/ended", "Open returns an error soon when its context has ended", nothing, openEnded},
	{"Open/leaves-nothing", "a closed connection leaves no goroutine behind", nothing, openLeavesNothing},
	{"List/complete", "List returns all tools with their definitions, every time", nothing, listComplete},
	{"List/ended", "List returns an error soon when its context has ended", nothing, listEnded},
	{"List/changed", "when the tools change, Changed reports it, List returns the new tools, and a removed tool fails", change, listChanged},
	{"Invoke/echo", "arguments and text arrive unchanged", nothing, invokeEcho},
	{"Invoke/no-arguments", "empty arguments mean {}", nothing, invokeNoArguments},
	{"Invoke/fail", "a failure that a tool reports is a Failure with the code EXECUTION_FAILED and the tool's text", nothing, invokeFail},
	{"Invoke/ended", "Invoke returns an error soon when its context has ended", nothing, invokeEnded},
	{"Invoke/concurrent", "many concurrent calls each get their own answer", nothing, invokeConcurrent},
	{"Invoke/progress", "all reports arrive in order before Invoke returns, and none after it", progress, invokeProgress},
	{"Invoke/cancel", "a call ends soon after its context, as CANCELED or TIMEOUT, and other calls continue", nothing, invokeCancel},
	{"Ping/answered", "a ping succeeds while the connection is open, and fails soon when its context or the connection has ended", nothing, pingAnswered},
	{"Close/ends", "after Close, Lost is closed, Err is nil, and List and Invoke fail", nothing, closeEnds},
	{"Close/again", "Close may be called repeatedly and concurrently, and returns the same", nothing, closeAgain},
	{"Close/in-flight", "Close ends running calls without waiting for their answers", nothing, closeInFlight},
	{"Close/ended", "Close returns soon when its context has ended, and the connection is closed", nothing, closeEnded},
	{"Lost/noticed", "a loss closes Lost soon, Err returns the reason, also after Close, and List and Invoke fail", loss, lostNoticed},
	{"Lost/in-flight", "a loss ends running calls soon, as OUTCOME_UNKNOWN: they may have taken effect", loss, lostInFlight},
	{"Lost/reopened", "after a loss, Open makes a new connection that works", loss, lostReopened},
}

func openFresh(s *subject) {
	first, second := s.open(), s.open()
	if first == second {
		s.Fatal("two Opens returned the same connection")
	}
	s.echoes(s.tool(first, "echo"), "first")
	s.echoes(s.tool(second, "echo"), "second")
	s.closes(first)
	s.echoes(s.tool(second, "echo"), "second, after the first was closed")
	select {
	case <-second.Lost():
		s.Fatal("closing the first connection lost the second")
	default:
	}
}

func openOutlives(s *subject) {
	ctx, cancel := context.WithCancel(s.context())
	connection, err := s.Source.Open(ctx)
	cancel()
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	defer connection.Close(s.expired())
	s.echoes(s.tool(connection, "echo"), "still here")
	// If the context ends the connection, that may take a moment.
	select {
	case <-connection.Lost():
		s.Fatal("the connection was lost with the context of Open")
	case <-time.After(50 * time.Millisecond):
	}
	s.echoes(s.tool(connection, "echo"), "still here")
}

func openEnded(s *subject) {
	s.soon("Open with a context that has ended", func() {
		connection, err := s.Source.Open(s.expired())
		if err == nil {
			connection.Close(s.expired())
			s.Error("Open succeeded with a context that has ended")
		}
	})
}

func openLeavesNothing(s *subject) {
	const rounds = 20
	round := func() {
		connection := s.open()
		s.echoes(s.tool(connection, "echo"), "x")
		s.closes(connection)
	}
	round() // starts everything that is started only once
	before := runtime.NumGoroutine()
	for range rounds {
		round()
	}
	for deadline := time.Now().Add(s.Patience); runtime.NumGoroutine() >= before+rounds/2; { // before may count some that were ending
		if time.Now().After(deadline) {
			s.Fatalf("%d goroutines after %d connections, %d before", runtime.NumGoroutine(), rounds, before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func listComplete(s *subject) {
	connection := s.open()
	tools := s.tools(connection)
	names := slices.Sorted(maps.Keys(tools))
	if want := []string{"echo", "fail", "progress", "wait"}; !slices.Equal(names, want) {
		s.Fatalf("List returned the tools %q, want %q", names, want)
	}
	for name, again := range s.tools(connection) {
		definition := again.Definition()
		if !reflect.DeepEqual(definition, tools[name].Definition()) {
			s.Errorf("the definition of %q changed from List to List", name)
		}
		if definition != again.Definition() {
			s.Errorf("Definition of %q returned another value the second time", name)
		}
		var schema map[string]any
		if err := json.Unmarshal(definition.InputSchema, &schema); err != nil || schema["type"] != "object" {
			s.Errorf("the input schema of %q is %s", name, definition.InputSchema)
		}
	}
}

func listEnded(s *subject) {
	connection := s.open()
	s.soon("List with a context that has ended", func() {
		if _, err := connection.List(s.expired()); err == nil {
			s.Error("List succeeded with a context that has ended")
		}
	})
	s.echoes(s.tool(connection, "echo"), "the connection still works")
}

func listChanged(s *subject) {
	connection := s.open()
	fail := s.tool(connection, "fail")
	s.Change()
	deadline := time.After(s.Patience)
	for { // one value may come before the list has changed
		select {
		case <-connection.Changed():
		case <-deadline:
			s.Fatalf("the new list was not there within %v", s.Patience)
		}
		tools := s.tools(connection)
		if tools["late"] != nil && tools["fail"] == nil {
			break
		}
	}
	if _, err := fail.Invoke(s.context(), textCall("gone")); err == nil {
		s.Error("a removed tool answered")
	}
	s.echoes(s.tool(connection, "echo"), "the others still work")
}

func invokeEcho(s *subject) {
	echo := s.tool(s.open(), "echo")
	for _, text := range []string{"plain", "", `"quoted" \ {}`, "line\nline\r\n\ttab", "žluťoučký 東京 🎻 \u2028", strings.Repeat("long ", 50_000)} {
		s.echoes(echo, text)
	}
}

func invokeNoArguments(s *subject) {
	tool := s.tool(s.open(), "progress")
	output, err := tool.Invoke(s.context(), &invoker.Call{})
	if err != nil || canister.TextOf(output.Content) != "done" {
		s.Fatalf("progress answered %q, %v", canister.TextOf(output.Content), err)
	}
}

func invokeFail(s *subject) {
	connection := s.open()
	_, err := s.tool(connection, "fail").Invoke(s.context(), textCall("no such city"))
	var failure *invoker.Failure
	if !errors.As(err, &failure) {
		s.Fatalf("fail returned %v, which is not a Failure", err)
	}
	if failure.Code != invoker.ExecutionFailed || !strings.Contains(failure.Message+canister.TextOf(failure.Content), "no such city") {
		s.Errorf("fail returned %v", failure)
	}
	s.echoes(s.tool(connection, "echo"), "the connection still works")
}

func invokeEnded(s *subject) {
	connection := s.open()
	echo := s.tool(connection, "echo")
	s.soon("Invoke with a context that has ended", func() {
		if _, err := echo.Invoke(s.expired(), textCall("x")); err == nil {
			s.Error("Invoke succeeded with a context that has ended")
		}
	})
	s.echoes(echo, "the connection still works")
}

func invokeConcurrent(s *subject) {
	echo := s.tool(s.open(), "echo")
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { s.echoes(echo, fmt.Sprintf("call %d", i)) })
	}
	s.soon("64 calls at the same time", all.Wait)
}

func invokeProgress(s *subject) {
	const steps = 50
	tool := s.tool(s.open(), "progress")
	var mu sync.Mutex
	var got []invoker.Progress
	call := &invoker.Call{
		Arguments: json.RawMessage(fmt.Sprintf(`{"steps":%d}`, steps)),
		Progress: func(p invoker.Progress) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, p)
		},
	}
	if _, err := tool.Invoke(s.context(), call); err != nil {
		s.Fatalf("progress: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != steps {
		s.Fatalf("%d reports had arrived when Invoke returned, want %d", len(got), steps)
	}
	for i, p := range got {
		if want := (invoker.Progress{Done: float64(i + 1), Total: steps, Message: fmt.Sprintf("step %d", i+1)}); !reflect.DeepEqual(p, want) {
			s.Fatalf("report %d is %+v, want %+v", i+1, p, want)
		}
	}
}

func invokeCancel(s *subject) {
	connection := s.open()
	canceled, other := s.wait(connection), s.wait(connection)
	canceled.cancel()
	if failure := s.failed(canceled); failure.Code != invoker.Canceled {
		s.Errorf("a cancelled call returned %v, want CANCELED", failure)
	}
	ctx, cancel := context.WithTimeout(s.context(), 50*time.Millisecond)
	defer cancel()
	wait := s.tool(connection, "wait")
	s.soon("a call whose deadline passes", func() {
		_, err := wait.Invoke(ctx, &invoker.Call{})
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Timeout {
			s.Errorf("a call whose deadline passed returned %v, want TIMEOUT", err)
		}
	})
	s.echoes(s.tool(connection, "echo"), "the connection still works")
	select {
	case <-other.done:
		s.Errorf("another call ended too: %v", other.err)
	case <-connection.Lost():
		s.Errorf("the connection was lost: %v", connection.Err())
	default:
	}
}

func pingAnswered(s *subject) {
	connection := s.open()
	pinger, ok := connection.(ensemble.Pinger)
	if !ok {
		s.Skip("the source does not ping")
	}
	var err error
	ping := func(ctx context.Context) error {
		s.soon("Ping", func() { err = pinger.Ping(ctx) })
		return err
	}
	for range 3 {
		if err := ping(s.context()); err != nil {
			s.Errorf("Ping of an open connection: %v", err)
		}
	}
	if ping(s.expired()) == nil {
		s.Error("Ping succeeded with a context that has ended")
	}
	s.echoes(s.tool(connection, "echo"), "after the pings")
	s.closes(connection)
	if ping(s.context()) == nil {
		s.Error("Ping succeeded after Close")
	}
}

func closeEnds(s *subject) {
	connection := s.open()
	echo := s.tool(connection, "echo")
	select {
	case <-connection.Lost():
		s.Fatal("Lost is closed before Close")
	default:
	}
	if err := connection.Err(); err != nil {
		s.Errorf("Err is %v before Close", err)
	}
	s.closes(connection)
	s.ended(connection, echo)
	if err := connection.Err(); err != nil {
		s.Errorf("Err is %v after Close", err)
	}
}

func closeAgain(s *subject) {
	connection := s.open()
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = connection.Close(s.context()) })
	}
	s.soon("four Closes at the same time", all.Wait)
	s.soon("one more Close", func() { errs = append(errs, connection.Close(s.expired())) })
	for _, err := range errs {
		if err != nil {
			s.Errorf("Close: %v", err)
		}
	}
}

func closeInFlight(s *subject) {
	connection := s.open()
	first, second := s.wait(connection), s.wait(connection)
	s.closes(connection)
	s.failed(first)
	s.failed(second)
	if err := connection.Err(); err != nil {
		s.Errorf("Err is %v after Close", err)
	}
}

func closeEnded(s *subject) {
	connection := s.open()
	echo := s.tool(connection, "echo")
	call := s.wait(connection)
	s.soon("Close with a context that has ended", func() { connection.Close(s.expired()) })
	s.failed(call)
	s.ended(connection, echo)
}

func lostNoticed(s *subject) {
	connection := s.open()
	echo := s.tool(connection, "echo")
	s.Lose()
	s.await("Lost", connection.Lost())
	cause := connection.Err()
	if cause == nil {
		s.Error("Err is nil after a loss")
	}
	s.ended(connection, echo)
	s.soon("Close after a loss", func() { connection.Close(s.context()) })
	if after := connection.Err(); after == nil || cause != nil && after.Error() != cause.Error() {
		s.Errorf("Err was %v, and is %v after Close", cause, after)
	}
}

func lostInFlight(s *subject) {
	connection := s.open()
	call := s.wait(connection)
	s.Lose()
	if failure := s.failed(call); failure.Code != invoker.OutcomeUnknown {
		s.Errorf("a call that ran when the connection was lost returned %v, want OUTCOME_UNKNOWN", failure)
	}
}

func lostReopened(s *subject) {
	s.tool(s.open(), "echo")
	s.Lose()
	s.echoes(s.tool(s.open(), "echo"), "here again")
}

// echoes calls the tool echo and checks its answer.
func (s *subject) echoes(echo invoker.Invoker, text string) {
	s.Helper()
	output, err := echo.Invoke(s.context(), textCall(text))
	if err != nil {
		s.Errorf("echo of %.40q: %v", text, err)
		return
	}
	if got := canister.TextOf(output.Content); got != text {
		s.Errorf("echo of %.40q answered %.40q", text, got)
	}
}

// closes closes a connection gracefully.
func (s *subject) closes(connection ensemble.Connection) {
	s.Helper()
	s.soon("Close", func() {
		if err := connection.Close(s.context()); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
}

// ended checks that the connection has ended.
func (s *subject) ended(connection ensemble.Connection, echo invoker.Invoker) {
	s.Helper()
	select {
	case <-connection.Lost():
	default:
		s.Error("Lost is not closed")
	}
	s.soon("List after the end", func() {
		if _, err := connection.List(s.context()); err == nil {
			s.Error("List succeeded after the end")
		}
	})
	s.soon("Invoke after the end", func() {
		if _, err := echo.Invoke(s.context(), textCall("x")); err == nil {
			s.Error("Invoke succeeded after the end")
		}
	})
}

// textCall makes a call with {"text": text}.
func textCall(text string) *invoker.Call {
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // a string always marshals
	}
	return &invoker.Call{Arguments: arguments}
}
