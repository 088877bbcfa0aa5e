// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker"
)

// never is a Wait channel that is never closed.
var never = make(chan struct{})

// half is long enough to be streamed in several pieces.
const half = "Half of an answer, which the rest of it would follow, and then"

// dialogue is a conversation of four exchanges.
var dialogue = []Line{
	{Text: "Let me look.", Calls: []Call{
		{Name: "local__weather", Arguments: `{"city":"Oslo"}`, CallID: "call_a"},
		{Name: "local__weather", Arguments: `{"city":"Bergen"}`, CallID: "call_b"},
	}},
	{Calls: []Call{{Name: "files__read", Arguments: `{"path":"/tmp/a b"}`, CallID: "call_c"}}},
	{Text: "It rains."},
	{Text: "You are welcome."},
}

// cases are the rules that every model must follow.
var cases = []testCase{
	{"Answer/text", "the deltas of an answer, concatenated, are its text, and one Reply comes last", texts, answerText},
	{"Answer/streamed", "a delta is yielded when it arrives, not when the answer is complete", []Line{{Text: half, Wait: never}}, answerStreamed},
	{"Answer/empty", "an empty answer is a Reply without content", []Line{{}}, answerEmpty},
	{"Answer/calls", "calls keep their order, their names and the text of their arguments, with and without other text", []Line{
		{Calls: calls}, {Text: "One moment.", Calls: calls},
	}, answerCalls},
	{"Answer/identities", "the message and each call have identities from NewID, and calls refer to the message", dialogue, answerIdentities},
	{"Answer/call-ids", "calls keep the CallID of the server, and get one if it is missing or repeated", []Line{
		{Calls: []Call{{Name: "a", Arguments: "{}", CallID: "call_x"}, {Name: "b", Arguments: "{}", CallID: "call_y"}}},
		{Calls: []Call{{Name: "a", Arguments: "{}"}, {Name: "b", Arguments: "{}"}}},
		{Calls: []Call{{Name: "a", Arguments: "{}", CallID: "call_x"}, {Name: "b", Arguments: "{}", CallID: "call_x"}}},
	}, answerCallIDs},
	{"Answer/finish", "the reasons why the model stopped are distinct", []Line{
		{Text: "Done.", Finish: canister.FinishStop},
		{Text: "The first of", Finish: canister.FinishLength},
		{Text: "The", Finish: canister.FinishContentFilter},
		{Text: "I cannot help with that.", Finish: canister.FinishRefusal},
		{Calls: calls, Finish: canister.FinishInvocations},
	}, answerFinish},
	{"Answer/usage", "usage is what the server reports, and nil if it reports none", []Line{
		{Text: "a", Usage: &canister.Usage{Input: 12, Cached: 4, CacheWritten: 5, Output: 3, Reasoning: 1}}, {Text: "b"},
	}, answerUsage},
	{"Request/history", "a history with every kind of canister is sent to the server, with results and tools", dialogue, requestHistory},
	{"Request/no-invocations", "NoInvocations changes the request, and keeps the tools in it", dialogue, requestNoInvocations},
	{"Request/settings", "MaxTokens is sent to the server, Temperature and Stop cause no error, and none of them affects the next request", dialogue, requestSettings},
	{"Request/stable", "the same request is sent as the same bytes, also without tools", dialogue, requestStable},
	{"Request/unchanged", "Exchange does not change the request", dialogue, requestUnchanged},
	{"Request/concurrent", "many concurrent exchanges each get their own answer", dialogue, requestConcurrent},
	{"Error/refused", "a permanent refusal is a ModelError that is not retryable, with the server's message", []Line{
		{Err: &converse.ModelError{Message: "the request is too odd", Status: 400}},
	}, errorRefused},
	{"Error/busy", "a temporary refusal is a retryable ModelError", []Line{
		{Err: &converse.ModelError{Message: "too many at once", Status: 503, Retryable: true}},
	}, errorBusy},
	{"Error/broken", "an incomplete answer is a retryable ModelError without a Reply", []Line{
		{Text: half, Err: &converse.ModelError{Message: "the connection is gone", Retryable: true}},
	}, errorBroken},
	{"End/before", "an exchange with a context that has ended fails soon, with the context's error", dialogue, endBefore},
	{"End/during", "an exchange ends soon after its context, with the context's error", []Line{{Text: half, Wait: never}}, endDuring},
	{"End/left", "leaving the loop ends the exchange soon, and others continue", []Line{{Text: half, Wait: never}, {Text: "Here."}}, endLeft},
	{"End/leaves-nothing", "an exchange leaves no goroutine behind, however it ended", []Line{{Text: half, Wait: never}, {Text: "Here."}}, endLeavesNothing},
	{"Bind/same", "a bound model sends the same requests and returns the same answers", dialogue, bindSame},
	{"Screen/same", "Screen returns the same for the same definition, accepts plain ones, and changes nothing", dialogue, screenSame},
	{"Describe/same", "Describe names the model, and a bound model has the same description", dialogue, describeSame},
}

var texts = []Line{
	{Text: "Hello."},
	{Text: half},
	{Text: "žluťoučký 東京 🎻 \u2028 line\nline\r\n\ttab \"quoted\" \\ {} data: [DONE]"},
	{Text: " white space \n"},
	{Text: strings.Repeat("A long answer. ", 5_000)},
}

// calls have the oddities that calls of real models have.
var calls = []Call{
	{Name: "b__tool", Arguments: `{"n": 1, "text": "\u00e9 \"x\""}`, CallID: "call_1"},
	{Name: "a__tool", Arguments: `{"n":2}`, CallID: "call_2"},
	{Name: "b__tool", Arguments: `{"n": `, CallID: "call_3"},
	{Name: "no_such_tool", Arguments: `{}`, CallID: "call_4"},
}

func answerText(s *subject) {
	for n, line := range s.lines {
		x := s.answer(s.Model, s.request(n))
		s.compare(x.reply, line)
		if len(x.reply.Invocations) > 0 {
			s.Errorf("the answer asks for %d tools", len(x.reply.Invocations))
		}
		if s.Whole && x.deltas == 0 {
			continue
		}
		if x.text != line.Text {
			s.Errorf("the deltas are %s, want %s", suite.Quote(x.text), suite.Quote(line.Text))
		}
		if !s.Whole && len(line.Text) >= len(half) && x.deltas < 2 {
			s.Errorf("an answer of %d bytes came in %d deltas", len(line.Text), x.deltas)
		}
	}
}

func answerStreamed(s *subject) {
	if s.Whole {
		s.Skip("the model does not stream")
	}
	var text string
	s.soon("the text of an answer that does not end", func() {
		ctx := s.context()
		for event, err := range s.Model.Exchange(ctx, s.request(0)) {
			if err == nil {
				err = ctx.Err() // the deltas were withheld until the end
			}
			if err != nil {
				s.Errorf("after %q: %v", text, err)
				return
			}
			if delta, ok := event.(converse.Delta); ok {
				text += delta.Text
			}
			if text == half {
				return
			}
		}
	})
}

func answerEmpty(s *subject) {
	x := s.answer(s.Model, s.request(0))
	if len(x.reply.Message.Content) != 0 || len(x.reply.Invocations) != 0 || x.text != "" {
		s.Errorf("an empty answer is %+v, with deltas %q", x.reply, x.text)
	}
	if x.reply.Message.ID == "" {
		s.Error("the message has no identity")
	}
}

func answerCalls(s *subject) {
	for n, line := range s.lines {
		x := s.answer(s.Model, s.request(n))
		s.compare(x.reply, line)
		if x.reply.Message.Finish != canister.FinishInvocations {
			s.Errorf("an answer with calls has the finish %q", x.reply.Message.Finish)
		}
	}
}

func answerIdentities(s *subject) {
	taken := map[string]bool{}
	for n := range s.lines {
		x := s.answer(s.Model, s.request(n))
		made := []string{x.reply.Message.ID}
		for _, invocation := range x.reply.Invocations {
			made = append(made, invocation.ID)
			if invocation.Message != x.reply.Message.ID {
				s.Errorf("a call refers to the message %q, want %q", invocation.Message, x.reply.Message.ID)
			}
		}
		for _, id := range made {
			if !strings.HasPrefix(id, "made-") || taken[id] {
				s.Errorf("the identity %q is not from NewID, or occurs twice", id)
			}
			taken[id] = true
		}
	}
}

func answerCallIDs(s *subject) {
	for n, line := range s.lines {
		x := s.answer(s.Model, s.request(n))
		if len(x.reply.Invocations) != len(line.Calls) {
			s.Fatalf("the answer asks for %d tools, want %d", len(x.reply.Invocations), len(line.Calls))
		}
		taken := map[string]bool{}
		for i, invocation := range x.reply.Invocations {
			if invocation.CallID == "" || taken[invocation.CallID] {
				s.Errorf("line %d: the CallID %q is empty or occurs twice", n, invocation.CallID)
			}
			taken[invocation.CallID] = true
			if n == 0 && invocation.CallID != line.Calls[i].CallID {
				s.Errorf("the CallID is %q, want %q", invocation.CallID, line.Calls[i].CallID)
			}
		}
	}
}

func answerFinish(s *subject) {
	for n, line := range s.lines {
		s.compare(s.answer(s.Model, s.request(n)).reply, line)
	}
}

func answerUsage(s *subject) {
	for n, line := range s.lines {
		got := s.answer(s.Model, s.request(n)).reply.Message.Usage
		if !reflect.DeepEqual(got, line.Usage) {
			s.Errorf("the usage is %+v, want %+v", got, line.Usage)
		}
	}
}

func requestHistory(s *subject) {
	request := s.request(3)
	s.compare(s.answer(s.Model, request).reply, s.lines[3])
	if s.Received == nil {
		return
	}
	received := s.Received()
	for _, piece := range []string{
		"Answer in one sentence", "Opening hours", "nine to five", // supervisor, document
		"Is it raining", "Let me look", "It rains", "Thank you", // user, assistant
		"local__weather", "Bergen", "call_b", // invocation
		"three degrees", "no such file", // result, failure
		"Report the weather", "name of a city", // tool
	} {
		if !strings.Contains(received, piece) {
			s.Errorf("the server did not receive %q", piece)
		}
	}
	if strings.Contains(received, "for programs alone") {
		s.Error("the server received metadata")
	}
}

func requestNoInvocations(s *subject) {
	request := s.request(2)
	s.compare(s.answer(s.Model, request).reply, s.lines[2])
	if s.Received == nil {
		return
	}
	with := s.Received()
	request.NoInvocations = true
	s.compare(s.answer(s.Model, request).reply, s.lines[2])
	without := s.Received()
	if with == without {
		s.Error("NoInvocations does not change the request")
	}
	if !strings.Contains(without, "Report the weather") {
		s.Error("the tools are not in a request with NoInvocations")
	}
}

// withSettings adds settings to a request.
func withSettings(request *converse.Request) *converse.Request {
	temperature := 0.625
	request.MaxTokens, request.Temperature, request.Stop = 4321, &temperature, []string{"the end \"here\""}
	return request
}

func requestSettings(s *subject) {
	send := func(request *converse.Request) string {
		s.compare(s.answer(s.Model, request).reply, s.lines[2])
		if s.Received == nil {
			return ""
		}
		return s.Received()
	}
	plain := send(s.request(2))
	request := withSettings(s.request(2))
	set := send(request)
	if s.Received != nil && (strings.Contains(plain, "4321") || !strings.Contains(set, "4321")) {
		s.Error("the server did not receive MaxTokens")
	}
	if want := withSettings(s.request(2)); request.MaxTokens != want.MaxTokens || *request.Temperature != *want.Temperature || !slices.Equal(request.Stop, want.Stop) {
		s.Error("the model changed the settings of the request")
	}
	if plain != send(s.request(2)) {
		s.Error("the settings of a request change the next one")
	}
}

func requestStable(s *subject) {
	bare := s.request(2)
	bare.Tools = &converse.Toolset{}
	for _, request := range []*converse.Request{s.request(2), bare} {
		var sent []string
		for range 3 {
			s.compare(s.answer(s.Model, request).reply, s.lines[2])
			if s.Received != nil {
				sent = append(sent, s.Received())
			}
			request = &converse.Request{History: historyOf(2), Tools: &converse.Toolset{Definitions: request.Tools.Definitions}, NewID: s.newID}
		}
		if len(slices.Compact(sent)) > 1 {
			s.Error("repeated requests are sent as different bytes")
		}
	}
}

func requestUnchanged(s *subject) {
	request := s.request(3)
	s.answer(s.Model, request)
	if !reflect.DeepEqual(request.History, historyOf(3)) {
		s.Error("the model changed the history")
	}
	if !reflect.DeepEqual(request.Tools, tools()) {
		s.Error("the model changed the tools")
	}
}

func requestConcurrent(s *subject) {
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			n := i % len(s.lines)
			x := s.exchange(s.context(), s.Model, s.request(n))
			if x.err != nil {
				s.Errorf("a concurrent exchange failed: %v", x.err)
				return
			}
			s.compare(x.reply, s.lines[n])
		})
	}
	s.soon("many exchanges", all.Wait)
}

func errorRefused(s *subject) {
	failed := s.modelError(s.lines[0])
	if want := s.lines[0].Err.(*converse.ModelError); failed.Status != want.Status || !strings.Contains(failed.Message, want.Message) {
		s.Errorf("the error has the status %d and the message %q, want %d and %q", failed.Status, failed.Message, want.Status, want.Message)
	}
}

func errorBusy(s *subject) {
	failed := s.modelError(s.lines[0])
	if want := s.lines[0].Err.(*converse.ModelError); failed.Status != want.Status {
		s.Errorf("the error has the status %d, want %d", failed.Status, want.Status)
	}
}

func errorBroken(s *subject) { s.modelError(s.lines[0]) }

// modelError returns the error of an exchange for which the server reports an error.
func (s *subject) modelError(line Line) *converse.ModelError {
	s.Helper()
	err := s.failure(s.context(), s.request(0))
	var failed *converse.ModelError
	if !errors.As(err, &failed) {
		s.Fatalf("the error is not a ModelError: %v", err)
	}
	if want := line.Err.(*converse.ModelError).Retryable; failed.Retryable != want {
		s.Errorf("the error is retryable: %t, want %t", failed.Retryable, want)
	}
	return failed
}

func endBefore(s *subject) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.failure(ctx, s.request(0)); !errors.Is(err, context.Canceled) {
		s.Errorf("the error is %v", err)
	}
}

func endDuring(s *subject) {
	ctx, cancel := context.WithCancel(s.context())
	defer cancel()
	var failed error
	s.soon("the end of the exchange", func() {
		if s.Whole { // no event shows that the server is busy
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		for event, err := range s.Model.Exchange(ctx, s.request(0)) {
			if _, ok := event.(converse.Reply); ok {
				s.Error("the exchange yields a reply")
			}
			cancel()
			failed = err
		}
	})
	if !errors.Is(failed, context.Canceled) {
		s.Errorf("the error is %v", failed)
	}
}

func endLeft(s *subject) {
	s.soon("leaving", func() { s.leave() })
	s.compare(s.answer(s.Model, s.request(1)).reply, s.lines[1])
}

// leave begins an exchange that never ends and leaves it: at the first delta if the model
// streams, otherwise by cancelling its context.
func (s *subject) leave() {
	ctx := s.context()
	if s.Whole {
		brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		ctx = brief
	}
	for range s.Model.Exchange(ctx, s.request(0)) {
		break
	}
}

func endLeavesNothing(s *subject) {
	const rounds = 20
	round := func() {
		s.soon("leaving", s.leave)
		s.answer(s.Model, s.request(1))
		ctx, cancel := context.WithCancel(s.context())
		for range s.Model.Exchange(ctx, s.request(0)) {
			cancel()
		}
		cancel()
	}
	if s.Whole {
		round = func() { s.leave(); s.answer(s.Model, s.request(1)) }
	}
	round() // starts goroutines that are started only once
	before := runtime.NumGoroutine()
	for range rounds {
		round()
	}
	for deadline := time.Now().Add(s.Patience); runtime.NumGoroutine() >= before+rounds/2; { // before may count some that were ending
		if time.Now().After(deadline) {
			s.Fatalf("%d goroutines after %d exchanges, %d before", runtime.NumGoroutine(), 3*rounds, before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// bindSame plays histories that grow, then a shorter one, then one that shares nothing
// with the earlier ones.
func bindSame(s *subject) {
	binder, ok := s.Model.(converse.Binder)
	if !ok {
		s.Skip("the model is not a Binder")
	}
	bound := binder.Bind()
	other := &converse.Request{History: []canister.Canister{
		canister.User{Head: canister.Head{ID: "other"}, Content: canister.Texts("Something else.")},
	}, Tools: tools(), NewID: s.newID}
	final := s.request(2)
	final.NoInvocations = true
	for _, request := range []*converse.Request{
		s.request(0), s.request(1), s.request(2), s.request(3), s.request(1), other, withSettings(s.request(2)), s.request(2), final,
	} {
		n := assistants(request.History)
		s.compare(s.answer(bound, request).reply, s.lines[n])
		if s.Received == nil {
			continue
		}
		sent := s.Received()
		s.answer(s.Model, request)
		if sent != s.Received() {
			s.Errorf("a bound model sends different bytes for the request of line %d", n)
		}
	}
}

func screenSame(s *subject) {
	screener, ok := s.Model.(converse.Screener)
	if !ok {
		s.Skip("the model is not a Screener")
	}
	odd := []*invoker.Definition{
		{Name: "odd", InputSchema: json.RawMessage(`{"type":"string"}`)},
		{Name: "odder", InputSchema: json.RawMessage(`{"$ref":"#/nowhere"}`)},
		{Name: "oddest", InputSchema: json.RawMessage(`[`)},
	}
	plain := tools().Definitions
	first := make([]string, len(odd))
	for i, definition := range odd {
		first[i] = fmt.Sprint(screener.Screen(definition))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i, definition := range odd {
				if again := fmt.Sprint(screener.Screen(definition)); again != first[i] {
					s.Errorf("Screen returns %q and then %q", first[i], again)
				}
			}
			for _, definition := range plain {
				if err := screener.Screen(definition); err != nil {
					s.Errorf("Screen refuses %s: %v", definition.Name, err)
				}
			}
		})
	}
	all.Wait()
	if !reflect.DeepEqual(plain, tools().Definitions) {
		s.Error("Screen changed a definition")
	}
}

func describeSame(s *subject) {
	describer, ok := s.Model.(converse.Describer)
	if !ok {
		s.Skip("the model is not a Describer")
	}
	info := describer.Describe()
	if info.Name == "" || info.Provider == "" {
		s.Errorf("the model is described as %+v, without its name or provider", info)
	}
	if again := describer.Describe(); !reflect.DeepEqual(info, again) {
		s.Errorf("the model is described as %+v and then as %+v", info, again)
	}
	binder, ok := s.Model.(converse.Binder)
	if !ok {
		return
	}
	if bound, ok := binder.Bind().(converse.Describer); ok && !reflect.DeepEqual(info, bound.Describe()) {
		s.Errorf("the model is described as %+v, and as %+v when it is bound", info, bound.Describe())
	}
}
