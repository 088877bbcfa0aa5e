// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func sampleRequest(text string) *invoker.SampleRequest {
	return &invoker.SampleRequest{System: "Be brief.", Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts(text)}}}
}

// asker is a tool that asks the model several times and says what it was told.
func asker(name string, times int) invoker.Invoker {
	return fn(name, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		var said []string
		for n := range times {
			result, err := call.Sample(ctx, sampleRequest(fmt.Sprint("question ", n)))
			if err != nil {
				said = append(said, err.Error())
				continue
			}
			said = append(said, result.Text+"/"+result.Model+"/"+result.Finish)
		}
		// What a tool writes there itself counts for nothing.
		forged := canister.Fields{"io.github.consort-go/sampled": json.RawMessage(`{"exchanges":-100}`)}
		return invoker.Output{Content: canister.Texts(strings.Join(said, "; ")), Metadata: forged}, nil
	})
}

func usage(input, output int64) *canister.Usage { return &canister.Usage{Input: input, Output: output} }

func TestSample(t *testing.T) {
	alone := func(request *converse.Request) error {
		if len(request.History) != 2 || len(request.Tools.Definitions) != 0 {
			return fmt.Errorf("the request has %d canisters and %d tools", len(request.History), len(request.Tools.Definitions))
		}
		system, _ := request.History[0].(canister.Supervisor)
		user, _ := request.History[1].(canister.User)
		if got := canister.TextOf(system.Content) + canister.TextOf(user.Content); got != "Be brief.question 0" {
			return fmt.Errorf("it is asked %q", got)
		}
		return nil
	}
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}, Usage: usage(10, 1)},
		conversetest.Line{Text: "blue", Expect: alone, Usage: usage(5, 2)},
		conversetest.Line{Text: "long", Finish: canister.FinishLength, Usage: usage(5, 3)},
		conversetest.Line{Text: "done", Usage: usage(20, 1), Expect: told("blue/script/endTurn; long/script/maxTokens")},
	)
	talk := converse.New(script, newRoster(t, asker("ask", 2)), nil)
	turn := last(t, play(t, talk, "go"))
	played(t, script)
	sound(t, talk.History())
	if turn.Exchanges != 4 || turn.Usage != (canister.Usage{Input: 40, Output: 7}) {
		t.Errorf("the turn is %+v", turn)
	}
	if got := string(results(talk.History())[0].Metadata["io.github.consort-go/sampled"]); got != `{"exchanges":2,"input":10,"output":5}` {
		t.Errorf("the result remembers %s", got)
	}
	if len(talk.History()) != 5 {
		t.Errorf("the exchanges of the tool are in the history: %d canisters", len(talk.History()))
	}
}

// The limits of the turn hold for what tools ask, and say which it was.
func TestSampleLimits(t *testing.T) {
	for _, test := range []struct {
		limits converse.Limits
		told   string
		reason converse.Reason
	}{
		{
			converse.Limits{Exchanges: 3},
			"one/script/endTurn; two/script/endTurn; DENIED: The model was not asked: the turn has reached its limit of 3 exchanges.", converse.ReasonExchanges,
		},
		{
			converse.Limits{Tokens: 14},
			"one/script/endTurn; two/script/endTurn; DENIED: The model was not asked: the turn has reached its limit of 14 tokens.", converse.ReasonTokens,
		},
	} {
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}, Usage: usage(4, 1)},
			conversetest.Line{Text: "one", Usage: usage(4, 1)},
			conversetest.Line{Text: "two", Usage: usage(4, 1)},
		)
		talk := converse.New(script, newRoster(t, asker("ask", 3)), &converse.Options{Limits: test.limits})
		turn := last(t, play(t, talk, "go"))
		played(t, script)
		if got := canister.TextOf(results(talk.History())[0].Content); got != test.told || turn.Reason != test.reason || turn.Exchanges != 3 {
			t.Errorf("the tool was told %q, and the turn is %+v", got, turn)
		}
		// Another process, which has the history alone, comes to the same end.
		limits := test.limits
		if next, ok := converse.Next(through(t, talk.History()), converse.Policy{Limits: limits},
			time.Now()).(converse.Done); !ok || next.Reason != test.reason {
			t.Errorf("after a restart, next is %+v", next)
		}
		limits.FinalAnswer = true
		if next, ok := converse.Next(through(t, talk.History()), converse.Policy{Limits: limits},
			time.Now()).(converse.Exchange); !ok || !next.Final || next.Limited != test.reason {
			t.Errorf("with a final answer, next is %+v", next)
		}
	}
}

// Of the numbers that a history claims, none lets a turn go on for longer.
func TestSampledNonsense(t *testing.T) {
	for _, text := range []string{`{"exchanges":-5}`, `{"exchanges":9223372036854775807,"input":1}`, `{"exchanges":1,"input":-9}`, `[]`, `{"exchanges":"2"}`} {
		history := []canister.Canister{
			canister.User{Head: canister.Head{ID: "u", Time: time.Now()}},
			canister.Assistant{Head: canister.Head{ID: "a"}},
			canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "x"},
			canister.Result{
				Head: canister.Head{
					ID: "r", Extra: canister.Extra{Metadata: canister.Fields{"io.github.consort-go/sampled": json.RawMessage(text)}},
				}, Invocation: "i",
			},
		}
		if _, ok := converse.Next(history, converse.Policy{Limits: converse.Limits{Exchanges: 2}}, time.Now()).(converse.Exchange); !ok {
			t.Errorf("%s ends the turn", text)
		}
		history = append(history, canister.Assistant{Head: canister.Head{ID: "b"}},
			canister.Invocation{Head: canister.Head{ID: "j"}, Message: "b", CallID: "c", Name: "x"},
			canister.Result{Head: canister.Head{ID: "s"}, Invocation: "j"})
		if next, ok := converse.Next(history, converse.Policy{Limits: converse.Limits{Exchanges: 2}},
			time.Now()).(converse.Done); !ok || next.Reason != converse.ReasonExchanges {
			t.Errorf("%s does not end the turn", text)
		}
	}
}

// Nor does what a tool claims to have spent.
func TestSampledForged(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}}, conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, asker("ask", 0)), nil)
	play(t, talk, "go")
	if got := results(talk.History())[0].Metadata; len(got) != 0 {
		t.Errorf("the result remembers %s", got)
	}
}

func TestSampleFails(t *testing.T) {
	var got []error
	tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		for _, request := range []*invoker.SampleRequest{
			nil, {}, {Messages: []invoker.SampleMessage{{Role: "system"}}}, sampleRequest("a"), sampleRequest("b"),
		} {
			_, err := call.Sample(ctx, request)
			got = append(got, err)
		}
		return invoker.Output{}, nil
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
		conversetest.Line{Err: &converse.ModelError{Message: "overloaded", Retryable: true}},
		conversetest.Line{Err: errors.New("the key is hunter2")},
		conversetest.Line{Text: "done"},
	)
	play(t, converse.New(script, newRoster(t, tool), nil), "go")
	played(t, script)
	for i, want := range []string{
		"INVALID_ARGUMENTS", "INVALID_ARGUMENTS", "INVALID_ARGUMENTS",
		"UNAVAILABLE: The model cannot be reached: model: overloaded", "EXECUTION_FAILED: The model could not answer.",
	} {
		if i >= len(got) || got[i] == nil || !strings.HasPrefix(got[i].Error(), want) {
			t.Errorf("failure %d is %v, want %s", i, got[i], want)
		}
	}
}

// fragile is a model that panics when it is asked the first question of a tool.
type fragile struct{ converse.Model }

func (f fragile) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if user, ok := request.History[len(request.History)-1].(canister.User); ok && canister.TextOf(user.Content) == "question 0" {
		panic("hunter2")
	}
	return f.Model.Exchange(ctx, request)
}

// A model that panics in the exchange of a tool fails that alone.
func TestSamplePanics(t *testing.T) {
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
		conversetest.Line{Text: "blue"},
		conversetest.Line{Text: "done"},
	)
	talk := converse.New(fragile{script}, newRoster(t, asker("ask", 2)), nil)
	turn := last(t, play(t, talk, "go"))
	if got := canister.TextOf(results(talk.History())[0].Content); got != "EXECUTION_FAILED: The model could not answer.; blue/script/endTurn" ||
		turn.Exchanges != 4 {
		t.Errorf("the tool was told %q, in %d exchanges", got, turn.Exchanges)
	}
}

// Nothing that a tool starts outlives its call, and what it does after counts
// nowhere and reaches nobody.
func TestSampleAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stray sync.WaitGroup
		var early, late, person error
		release := make(chan struct{})
		tool := fn("ask", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			asking := make(chan struct{})
			stray.Go(func() {
				close(asking)
				_, early = call.Sample(context.Background(), sampleRequest("never ends"))
			})
			<-asking
			synctest.Wait()
			stray.Go(func() {
				<-release
				_, late = call.Sample(context.Background(), sampleRequest("too late"))
				_, person = call.Ask(context.Background(), &invoker.ElicitRequest{Message: "too late"})
			})
			return invoker.Output{Content: canister.Texts("ok")}, nil
		})
		never := make(chan struct{})
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
			conversetest.Line{Wait: never},
			conversetest.Line{Text: "done"},
		)
		roster, err := ensemble.NewRoster(ensemble.Local("local", tool))
		if err != nil {
			t.Fatal(err)
		}
		talk := converse.New(script, roster,
			&converse.Options{OwnRoster: true, Ask: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				return nil, context.Cause(ctx)
			}})
		defer talk.Close(context.Background())
		turn := last(t, play(t, talk, "go"))
		close(release)
		stray.Wait()
		if !errors.Is(early, context.Canceled) || late == nil || !strings.HasPrefix(late.Error(), "CANCELED") || !errors.Is(person, context.Canceled) {
			t.Errorf("the errors are %v, %v and %v", early, late, person)
		}
		if turn.Exchanges != 3 {
			t.Errorf("there were %d exchanges", turn.Exchanges)
		}
	})
}

func TestAsk(t *testing.T) {
	tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Really?"})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(answer.Action, answer.Content["sure"]))}, nil
	})
	yes := func(_ context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"sure": question.Server + question.Message}}, nil
	}
	outer := &invoker.Call{Person: yes}
	for _, test := range []struct {
		name string
		ask  func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)
		ctx  context.Context
		want string
	}{
		{"answered", yes, t.Context(), " acceptlocal__askReally?"},
		{"nobody", nil, t.Context(), "UNAVAILABLE The tool needs an answer from a person, but no person can be asked here."},
		{"the person behind the call", nil, invoker.WithCall(t.Context(), outer), " acceptlocal__askReally?"},
		{"nobody behind the call", nil, invoker.WithCall(t.Context(), &invoker.Call{}), "UNAVAILABLE The tool needs an answer"},
		{"panics", func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) { panic("oh") }, t.Context(), "EXECUTION_FAILED "},
		{
			"nothing", func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) { return nil, nil },
			t.Context(), "EXECUTION_FAILED The tool ran and failed",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}}, conversetest.Line{Text: "done"})
			talk := converse.New(script, newRoster(t, tool), &converse.Options{Ask: test.ask})
			if _, err := talk.Ask(test.ctx, canister.Text("go")); err != nil {
				t.Fatal(err)
			}
			result := results(talk.History())[0]
			if got := result.Code + " " + canister.TextOf(result.Content); !strings.HasPrefix(got, test.want) {
				t.Errorf("the result is %q, want %q", got, test.want)
			}
		})
	}
}

// The limits of the call stand still while a person thinks, but the end of the
// turn ends the question, and Close waits for the function behind it.
func TestAskTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Really?"})
			if err != nil {
				return invoker.Output{}, err
			}
			return invoker.Output{Content: canister.Texts(string(answer.Action))}, nil
		})
		local := ensemble.New("local", ensemble.LocalSource(tool), &ensemble.Options{CallTimeout: time.Second})
		roster, err := ensemble.NewRoster(local)
		if err != nil {
			t.Fatal(err)
		}
		deaf := make(chan struct{})
		patience := time.Hour
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
			conversetest.Line{Text: "done"}, conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}})
		talk := converse.New(script, roster,
			&converse.Options{OwnRoster: true, Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				if patience == 0 {
					<-deaf
				}
				time.Sleep(patience)
				return &invoker.ElicitResult{Action: invoker.Decline}, nil
			}})
		play(t, talk, "go")
		if got := results(talk.History())[0]; got.Code != "" || canister.TextOf(got.Content) != "decline" {
			t.Errorf("the result is %+v", got)
		}
		patience = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range talk.Send(ctx, canister.Text("again")) {
		}
		if got := results(talk.History())[1]; got.Code != "CANCELED" {
			t.Errorf("the result is %+v", got)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := talk.Close(short); err == nil || !strings.Contains(err.Error(), "not returned: Options.Ask") {
			t.Errorf("Close says %v", err)
		}
		close(deaf)
		if err := talk.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLog(t *testing.T) {
	tool := fn("log", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		for _, level := range []string{"debug", "info", "notice", "warning", "error", "emergency", "odd"} {
			call.Note(invoker.LogEntry{Level: level, Logger: "disk", Data: json.RawMessage(`{"free":3,"key":"hunter2-hunter2"}`)})
		}
		call.Note(invoker.LogEntry{Level: "info", Data: json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)})
		return invoker.Output{}, nil
	})
	core, logs := observer.New(zapcore.InfoLevel)
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("log", "{}")}}, conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, tool), &converse.Options{ID: "K7", Logger: zap.New(core), Redact: redact.New("hunter2-hunter2")})
	play(t, talk, "go")
	var levels []string
	for _, entry := range logs.FilterMessage("a tool says").All() {
		levels = append(levels, entry.Level.String())
		fields := entry.ContextMap()
		if data := fields["data"].(string); data != `{"free":3,"key":"[secret]"}` && len(data) != 4096 {
			t.Errorf("the data are %s", data)
		}
		if fields["tool"] != "local__log" || fields["conversation_id"] != "K7" || fields["invocation"] != results(talk.History())[0].Invocation {
			t.Errorf("the fields are %v", fields)
		}
	}
	if got := strings.Join(levels, " "); got != "info info warn error error info info" {
		t.Errorf("the levels are %s", got)
	}
}

// What a tool shows already is cleaned and bounded like a result.
func TestPartial(t *testing.T) {
	tool := fn("show", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		call.Report(invoker.Progress{Partial: append(canister.Texts("hunter2-hunter2"), nil, canister.StructuredContent{JSON: json.RawMessage(`{`)})})
		call.Report(invoker.Progress{Partial: canister.Texts(strings.Repeat("x", 1000))})
		return invoker.Output{}, nil
	})
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("show", "{}")}}, conversetest.Line{Text: "done"})
	talk := converse.New(script, newRoster(t, tool), &converse.Options{Redact: redact.New("hunter2-hunter2"), Limits: converse.Limits{ResultBytes: 100}})
	var texts []string
	for _, event := range play(t, talk, "go") {
		if progress, ok := event.(converse.InvocationProgressed); ok {
			if _, err := eventjson.Marshal(event); err != nil {
				t.Error(err)
			}
			texts = append(texts, canister.TextOf(progress.Progress.Partial))
		}
	}
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "[secret]\n") || !strings.HasSuffix(texts[0], "\n{") ||
		!strings.HasPrefix(texts[1], strings.Repeat("x", 100)+"\n[cut: 900") {
		t.Errorf("the pieces are %q", texts)
	}
}

// wishes says what a request asks of the answer.
func wishes(request *converse.Request) string {
	temperature := "-"
	if request.Temperature != nil {
		temperature = fmt.Sprint(*request.Temperature)
	}
	return fmt.Sprintf("%d %s %v", request.MaxTokens, temperature, request.Stop)
}

func wished(want string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		if got := wishes(request); got != want {
			return fmt.Errorf("the request has %s, want %s", got, want)
		}
		return nil
	}
}

// What a tool wishes of the answer reaches the model, as far as the limit of
// tokens lets it, and the conversation's own exchanges know nothing of it.
func TestSampleWishes(t *testing.T) {
	asked := sampleRequest("a")
	asked.MaxTokens, asked.Temperature, asked.Stop = 50, new(0.5), []string{"END", "hunter2-hunter2"}
	for _, test := range []struct {
		limit int64
		asked *invoker.SampleRequest
		want  string
	}{
		{0, asked, "50 0.5 [END [secret]]"},
		{0, sampleRequest("a"), "0 - []"},
		{0, &invoker.SampleRequest{Messages: asked.Messages, Temperature: new(0.0)}, "0 0 []"},
		{1000, asked, "50 0.5 [END [secret]]"},
		{40, asked, "29 0.5 [END [secret]]"},
		{40, sampleRequest("a"), "29 - []"},
	} {
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			_, err := call.Sample(ctx, test.asked)
			return invoker.Output{}, err
		})
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}, Usage: usage(10, 1), Expect: wished("0 - []")},
			conversetest.Line{Text: "blue", Expect: wished(test.want)},
			conversetest.Line{Text: "done", Expect: wished("0 - []")},
		)
		options := &converse.Options{Limits: converse.Limits{Tokens: test.limit}, Redact: redact.New("hunter2-hunter2")}
		play(t, converse.New(script, newRoster(t, tool), options), "go")
		played(t, script)
	}
}

// A bound and a temperature below 0 are refused before the model is asked.
func TestSampleNonsense(t *testing.T) {
	for _, wish := range []invoker.SampleRequest{{MaxTokens: -1}, {Temperature: new(-0.1)}, {Temperature: new(math.NaN())}, {Temperature: new(math.Inf(1))}} {
		wish.Messages = sampleRequest("a").Messages
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			_, err := call.Sample(ctx, &wish)
			return invoker.Output{}, err
		})
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}}, conversetest.Line{Text: "done"})
		talk := converse.New(script, newRoster(t, tool), nil)
		play(t, talk, "go")
		played(t, script)
		if got := results(talk.History())[0].Code; got != "INVALID_ARGUMENTS" {
			t.Errorf("%+v: the code is %s", wish, got)
		}
	}
}

// A model that takes no temperature is asked without one; the bound stays, and
// it counts as one exchange. What was refused for another reason stays refused.
func TestSampleRefusedWishes(t *testing.T) {
	for _, test := range []struct {
		status int
		ran    string // by the model's server
		want   string
	}{{400, "", "blue"}, {422, "", "blue"}, {401, "", "EXECUTION_FAILED"}, {400, "search", "EXECUTION_FAILED"}} {
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			asked := sampleRequest("a")
			asked.MaxTokens, asked.Temperature, asked.Stop = 50, new(0.5), []string{"END"}
			result, err := call.Sample(ctx, asked)
			if err != nil {
				return invoker.Output{}, err
			}
			return invoker.Output{Content: canister.Texts(result.Text)}, nil
		})
		lines := []conversetest.Line{
			{Calls: []conversetest.Call{call("ask", "{}")}},
			{Err: &converse.ModelError{Message: "no temperature", Status: test.status, Ran: test.ran}, Expect: wished("50 0.5 [END]")},
			{Text: "blue", Expect: wished("50 - []")},
			{Text: "done"},
		}
		if test.want != "blue" {
			lines = append(lines[:2], lines[3])
		}
		script := conversetest.NewScript(lines...)
		talk := converse.New(script, newRoster(t, tool), nil)
		turn := last(t, play(t, talk, "go"))
		played(t, script)
		result := results(talk.History())[0]
		if got := result.Code + canister.TextOf(result.Content); !strings.HasPrefix(got, test.want) || turn.Exchanges != 3 {
			t.Errorf("status %d: the result is %q, in %d exchanges", test.status, got, turn.Exchanges)
		}
	}
}

// parallelModel answers tools with all the tokens they may have, when it is let.
type parallelModel struct {
	converse.Model
	asked   chan int64
	release chan error
}

func (m *parallelModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if len(request.Tools.Definitions) > 0 {
		return m.Model.Exchange(ctx, request)
	}
	return func(yield func(converse.ModelEvent, error) bool) {
		m.asked <- request.MaxTokens
		if err := <-m.release; err != nil {
			yield(nil, err)
			return
		}
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Usage: usage(0, request.MaxTokens)}}, nil)
	}
}

// Answers side by side share what is left of the tokens: each is bounded by
// what the others cannot use up, waits if that is nothing, and what one does
// not use, because it failed, is there for the next.
func TestSampleSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			asked := sampleRequest("a")
			asked.MaxTokens = 60
			_, err := call.Sample(ctx, asked)
			return invoker.Output{}, err
		})
		calls := []conversetest.Call{call("ask", "{}"), call("ask", "{}"), call("ask", "{}"), call("ask", "{}")}
		model := &parallelModel{Model: conversetest.NewScript(conversetest.Line{Calls: calls}), asked: make(chan int64, 4), release: make(chan error)}
		roster, err := ensemble.NewRoster(ensemble.Local("local", tool))
		if err != nil {
			t.Fatal(err)
		}
		talk := converse.New(model, roster, &converse.Options{OwnRoster: true, Limits: converse.Limits{Tokens: 100}})
		defer talk.Close(context.Background())
		done := make(chan converse.Turn)
		go func() { done <- last(t, play(t, talk, "go")) }()
		synctest.Wait()
		if len(model.asked) != 2 {
			t.Fatalf("%d exchanges run at the same time", len(model.asked))
		}
		if first, second := <-model.asked, <-model.asked; max(first, second) != 60 || min(first, second) != 40 { // in any order
			t.Errorf("the answers may have %d and %d tokens", first, second)
		}
		model.release <- errors.New("broken") // one of 60 or 40
		synctest.Wait()
		if len(model.asked) != 1 {
			t.Fatalf("%d exchanges run in place of one that failed", len(model.asked))
		}
		close(model.release)
		turn := <-done
		if turn.Usage.Output != 100 || turn.Reason != converse.ReasonTokens {
			t.Errorf("the turn is %+v", turn)
		}
		codes := map[string]int{}
		for _, result := range results(talk.History()) {
			codes[result.Code]++
		}
		if codes["DENIED"] > 1 || codes["EXECUTION_FAILED"] != 1 {
			t.Errorf("the results are %v", codes)
		}
	})
}

// One that waits for others ends with its call's context.
func TestSampleWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone error
		tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			var first sync.WaitGroup
			first.Go(func() { _, _ = call.Sample(ctx, sampleRequest("a")) })
			synctest.Wait()
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, gone = call.Sample(brief, sampleRequest("b"))
			return invoker.Output{}, nil
		})
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
			conversetest.Line{Wait: make(chan struct{})}, conversetest.Line{Text: "done"})
		roster, err := ensemble.NewRoster(ensemble.Local("local", tool))
		if err != nil {
			t.Fatal(err)
		}
		talk := converse.New(script, roster, &converse.Options{OwnRoster: true, Limits: converse.Limits{Tokens: 100}})
		defer talk.Close(context.Background())
		if turn := last(t, play(t, talk, "go")); !errors.Is(gone, context.DeadlineExceeded) || turn.Exchanges != 3 {
			t.Errorf("the error is %v, after %d exchanges", gone, turn.Exchanges)
		}
	})
}
