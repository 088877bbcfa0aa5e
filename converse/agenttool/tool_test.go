// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// said is the result of the tool.
type said struct{ Conversation, Answer, Reason string }

// say calls the tool.
func say(ctx context.Context, tool invoker.Invoker, message, conversation string) (said, *invoker.Failure) {
	return sayCall(ctx, tool, &invoker.Call{}, message, conversation)
}

func sayCall(ctx context.Context, tool invoker.Invoker, call *invoker.Call, message, conversation string) (said, *invoker.Failure) {
	arguments := map[string]string{"message": message}
	if conversation != "" {
		arguments["conversation"] = conversation
	}
	call.Arguments, _ = json.Marshal(arguments)
	output, err := tool.Invoke(ctx, call)
	if err != nil {
		return said{}, invoker.AsFailure(err)
	}
	var s said
	for _, c := range output.Content {
		if structured, ok := c.(canister.StructuredContent); ok {
			if err := json.Unmarshal(structured.JSON, &s); err != nil {
				panic(err)
			}
		}
	}
	return s, nil
}

// parrot is a model that says how many messages of the user there are, and the
// last of them. It waits for a message on the way if there is a gate.
type parrot struct{ gate chan struct{} }

func (p *parrot) open(_ context.Context, id string) (*converse.Conversation, error) {
	return converse.New(p, nil, &converse.Options{ID: id}), nil
}

func (p *parrot) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	users, text := 0, ""
	for _, c := range request.History {
		if user, ok := c.(canister.User); ok {
			users, text = users+1, canister.TextOf(user.Content)
		}
	}
	line := conversetest.Line{Text: fmt.Sprint(users, " ", text), Wait: p.gate}
	return conversetest.NewScript(line).Exchange(ctx, request)
}

func newTool(t testing.TB, open converse.OpenFunc, opts *agenttool.Options) *agenttool.Tool {
	t.Helper()
	tool, err := agenttool.New(open, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tool.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tool
}

func TestTool(t *testing.T) {
	tool := newTool(t, (&parrot{}).open, nil)
	first, failure := say(t.Context(), tool, "hello", "")
	if failure != nil || first.Answer != "1 hello" || first.Reason != "answered" || len(first.Conversation) < 26 {
		t.Fatalf("%+v, %v", first, failure)
	}
	second, failure := say(t.Context(), tool, "and", first.Conversation)
	if failure != nil || second.Answer != "2 and" || second.Conversation != first.Conversation {
		t.Errorf("%+v, %v", second, failure)
	}
	other, failure := say(t.Context(), tool, "new", "")
	if failure != nil || other.Answer != "1 new" || other.Conversation == first.Conversation {
		t.Errorf("%+v, %v", other, failure)
	}
	if _, failure := say(t.Context(), tool, "", ""); failure == nil || failure.Code != invoker.InvalidArguments {
		t.Errorf("an empty message: %v", failure)
	}
	if _, failure := say(t.Context(), tool, "x", "guess"); failure == nil || failure.Code != invoker.NotFound || failure.Pointer != "/conversation" {
		t.Errorf("an identity that there is not: %v", failure)
	}
	definition := tool.Definition()
	if definition.Name != "converse" || !strings.Contains(string(definition.OutputSchema), `"answer"`) || definition.Description == "" {
		t.Errorf("the definition is %+v", definition)
	}
}

// A conversation is there for those alone who carry the same trusted values.
func TestToolIsBoundToItsOwner(t *testing.T) {
	renewed := invoker.NewTrusted[string]("token").Secret()
	for _, test := range []struct {
		name     string
		identity []string
		then     []invoker.Value
		found    bool
	}{
		{"the same", nil, []invoker.Value{userID.Value(42), renewed.Value("a")}, true},
		{"another", nil, []invoker.Value{userID.Value(43), renewed.Value("a")}, false},
		{"nobody", nil, nil, false},
		{"less", nil, []invoker.Value{userID.Value(42)}, false},
		{"a new token", nil, []invoker.Value{userID.Value(42), renewed.Value("b")}, false},
		{"a new token that does not count", []string{"user_id"}, []invoker.Value{userID.Value(42), renewed.Value("b")}, true},
		{"another, by name", []string{"user_id"}, []invoker.Value{userID.Value(43), renewed.Value("a")}, false},
		{"the value under another name", nil, []invoker.Value{invoker.NewTrusted[int64]("user_number").Value(42), renewed.Value("a")}, false},
		{"the same value as a text", []string{"user_id"}, []invoker.Value{invoker.NewTrusted[string]("user_id").Value("42")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool := newTool(t, (&parrot{}).open, &agenttool.Options{Identity: test.identity})
			first, failure := say(invoker.WithTrusted(t.Context(), userID.Value(42), renewed.Value("a")), tool, "hello", "")
			if failure != nil {
				t.Fatal(failure)
			}
			_, failure = say(invoker.WithTrusted(t.Context(), test.then...), tool, "again", first.Conversation)
			if found := failure == nil; found != test.found || !found && failure.Code != invoker.NotFound {
				t.Errorf("%v", failure)
			}
		})
	}
}

// Trusted values and the user of the call reach the conversation.
func TestToolPassesOn(t *testing.T) {
	who := fn("who", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		id, _ := userID.From(ctx)
		answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Really?"})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(id, " ", answer.Action))}, nil
	})
	roster := newRoster(t, who)
	script := conversetest.NewScript(
		conversetest.Line{Text: "Let me see who it is.", Calls: []conversetest.Call{call("who", "{}")}},
		conversetest.Line{Text: strings.Repeat("It is a long story. ", 10), Expect: told("42 accept")},
	)
	tool := newTool(t, func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(script, roster, &converse.Options{ID: id}), nil
	}, &agenttool.Options{Name: "ask_us", Needs: []invoker.Need{userID}})
	if _, failure := say(t.Context(), tool, "hello", ""); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("without a user: %v", failure)
	}
	var mu sync.Mutex
	var steps, text strings.Builder
	done := 0.0
	asked := &invoker.Call{
		Person: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return &invoker.ElicitResult{Action: invoker.Accept}, nil
		},
		Progress: func(p invoker.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Done <= done {
				t.Errorf("the progress goes from %v to %v", done, p.Done)
			}
			done = p.Done
			if p.Message != "" {
				fmt.Fprintln(&steps, p.Message)
			}
			text.WriteString(canister.TextOf(p.Partial))
		},
	}
	got, failure := sayCall(invoker.WithTrusted(t.Context(), userID.Value(42)), tool, asked, "hello", "")
	played(t, script)
	if failure != nil || !strings.HasPrefix(got.Answer, "It is a long story.") {
		t.Fatalf("%+v, %v", got, failure)
	}
	if text.String() != "Let me see who it is."+got.Answer {
		t.Errorf("the text was %q", text.String())
	}
	if want := "asking the model\ncalling local__who\nlocal__who returned\nasking the model\n"; steps.String() != want {
		t.Errorf("the steps are\n%s", steps.String())
	}
}

// One conversation does one thing at a time, and says so.
func TestToolBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parrot{}
		tool := newTool(t, p.open, nil)
		first, failure := say(t.Context(), tool, "hello", "")
		if failure != nil {
			t.Fatal(failure)
		}
		p.gate = make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			if got, failure := say(t.Context(), tool, "slow", first.Conversation); failure != nil || got.Answer != "2 slow" {
				t.Errorf("%+v, %v", got, failure)
			}
		})
		synctest.Wait()
		if _, failure := say(t.Context(), tool, "now", first.Conversation); failure == nil || failure.Code != invoker.Conflict || !failure.Retryable {
			t.Errorf("%v", failure)
		}
		close(p.gate)
		both.Wait()
		if got, failure := say(t.Context(), tool, "now", first.Conversation); failure != nil || got.Answer != "3 now" {
			t.Errorf("%+v, %v", got, failure)
		}
	})
}

// The conversation that was idle for the longest time is closed to make room; running
// ones are not.
func TestToolKeepsSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parrot{}
		tool := newTool(t, p.open, &agenttool.Options{Kept: 2, Each: 2})
		var ids []string
		for range 2 {
			time.Sleep(time.Second)
			got, failure := say(t.Context(), tool, "hello", "")
			if failure != nil {
				t.Fatal(failure)
			}
			ids = append(ids, got.Conversation)
		}
		time.Sleep(time.Second)
		if _, failure := say(t.Context(), tool, "again", ids[0]); failure != nil {
			t.Fatal(failure)
		}
		third, failure := say(t.Context(), tool, "third", "")
		if failure != nil {
			t.Fatal(failure)
		}
		if _, failure := say(t.Context(), tool, "gone", ids[1]); failure == nil || failure.Code != invoker.NotFound {
			t.Errorf("the one that was idle for longer is there: %v", failure)
		}
		p.gate = make(chan struct{})
		var busy sync.WaitGroup
		for _, id := range []string{ids[0], third.Conversation} {
			busy.Go(func() {
				if _, failure := say(t.Context(), tool, "slow", id); failure != nil {
					t.Error(failure)
				}
			})
		}
		synctest.Wait()
		if _, failure := say(t.Context(), tool, "fourth", ""); failure == nil || failure.Code != invoker.Unavailable || !failure.Retryable {
			t.Errorf("there is no room: %v", failure)
		}
		close(p.gate)
		busy.Wait()
	})
}

// A caller that starts many conversations displaces its own, idle or running, and never
// those of others.
func TestToolIsSharedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parrot{}
		tool := newTool(t, p.open, &agenttool.Options{Kept: 4, Each: 3})
		call := func(user int64, conversation string) (string, *invoker.Failure) {
			time.Sleep(time.Second)
			got, failure := say(invoker.WithTrusted(t.Context(), userID.Value(user)), tool, "hello", conversation)
			return got.Conversation, failure
		}
		begin := func(user int64) string {
			id, failure := call(user, "")
			if failure != nil {
				t.Fatal(failure)
			}
			return id
		}
		kept := func(what string, user int64, id string, want bool) {
			t.Helper()
			if _, failure := call(user, id); (failure == nil) != want || failure != nil && failure.Code != invoker.NotFound {
				t.Errorf("%s: %v", what, failure)
			}
		}
		ada := begin(1)
		var bens []string
		for range 5 { // the third of them fills the tool, and then Ben's own end
			bens = append(bens, begin(2))
		}
		kept("Ada's after Ben began many", 1, ada, true)
		kept("Ben's second", 2, bens[1], false)
		kept("Ben's third", 2, bens[2], true)
		cleo := begin(3) // at the limit: Ben has the most
		kept("Ben's fourth, after Cleo came", 2, bens[3], false)
		kept("Ada's after Cleo came", 1, ada, true)

		p.gate = make(chan struct{})
		var busy sync.WaitGroup
		for user, id := range map[int64]string{1: ada, 3: cleo} {
			busy.Go(func() {
				if _, failure := call(user, id); failure != nil {
					t.Error(failure)
				}
			})
		}
		for range 2 {
			busy.Go(func() {
				if _, failure := call(2, ""); failure != nil {
					t.Error(failure)
				}
			})
		}
		time.Sleep(time.Minute)
		if _, failure := call(2, ""); failure == nil || failure.Code != invoker.Unavailable || !failure.Retryable {
			t.Errorf("there is no room: %v", failure)
		}
		close(p.gate)
		busy.Wait()
	})
}

// Where two have as many, it is the one who comes that makes room.
func TestToolMakesRoomOfOnesOwn(t *testing.T) {
	for _, opts := range []agenttool.Options{{Kept: 2, Each: 2}, {Kept: 3, Each: 1}} {
		synctest.Test(t, func(t *testing.T) {
			tool := newTool(t, (&parrot{}).open, &opts)
			var ids []string
			for _, user := range []int64{1, 2, 2} {
				time.Sleep(time.Second)
				got, failure := say(invoker.WithTrusted(t.Context(), userID.Value(user)), tool, "hello", "")
				if failure != nil {
					t.Fatal(failure)
				}
				ids = append(ids, got.Conversation)
			}
			for i, user := range []int64{1, 2, 2} {
				_, failure := say(invoker.WithTrusted(t.Context(), userID.Value(user)), tool, "hello", ids[i])
				if gone := failure != nil; gone != (i == 1) {
					t.Errorf("%+v: the conversation %d: %v", opts, i, failure)
				}
			}
		})
	}
}

// However many conversations one identity has at work, another finds room.
func TestToolIsNotTakenWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parrot{gate: make(chan struct{})}
		tool := newTool(t, p.open, &agenttool.Options{Kept: 4}) // 2 each
		var busy sync.WaitGroup
		for _, user := range []int64{1, 1, 2, 2} {
			busy.Go(func() {
				if _, failure := say(invoker.WithTrusted(t.Context(), userID.Value(user)), tool, "hello", ""); failure != nil {
					t.Error(failure)
				}
			})
			synctest.Wait()
			if user == 1 {
				continue
			}
			_, failure := say(invoker.WithTrusted(t.Context(), userID.Value(1)), tool, "one more", "")
			if failure == nil || failure.Code != invoker.Unavailable || !strings.Contains(failure.Message, "All 2 ") {
				t.Errorf("a third at work: %v", failure)
			}
		}
		close(p.gate)
		busy.Wait()
	})
}

func TestNewToolFails(t *testing.T) {
	for name, opts := range map[string]*agenttool.Options{"Kept -1": {Kept: -1}, "Each -2": {Each: -2}, "Idle -1s": {Idle: -time.Second}} {
		if tool, err := agenttool.New((&parrot{}).open, opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, tool, err)
		}
	}
}

func TestToolForgetsWhatIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		tool := newTool(t, func(ctx context.Context, id string) (*converse.Conversation, error) {
			roster, err := ensemble.NewRoster(ensemble.New("local", &closing{count: &closed}, nil))
			return converse.New(&parrot{}, roster, &converse.Options{ID: id, OwnRoster: true}), err
		}, &agenttool.Options{Idle: time.Hour})
		got, failure := say(t.Context(), tool, "hello", "")
		if failure != nil {
			t.Fatal(failure)
		}
		for range 3 { // each turn begins the hour anew
			time.Sleep(59 * time.Minute)
			if _, failure := say(t.Context(), tool, "again", got.Conversation); failure != nil {
				t.Fatal(failure)
			}
		}
		time.Sleep(61 * time.Minute)
		synctest.Wait()
		if closed != 1 {
			t.Errorf("%d connections were closed", closed)
		}
		if _, failure := say(t.Context(), tool, "again", got.Conversation); failure == nil || failure.Code != invoker.NotFound {
			t.Errorf("it is still there: %v", failure)
		}
	})
}

// closing is a source that counts the connections that were closed.
type closing struct{ count *int }

func (c *closing) Open(ctx context.Context) (ensemble.Connection, error) {
	connection, err := ensemble.LocalSource(echo("echo")).Open(ctx)
	return closingConnection{connection, c.count}, err
}

type closingConnection struct {
	ensemble.Connection
	count *int
}

func (c closingConnection) Close(ctx context.Context) error {
	*c.count++
	return c.Connection.Close(ctx)
}

func TestToolFails(t *testing.T) {
	fault := errors.New("the key is hunter2")
	for _, test := range []struct {
		name  string
		open  converse.OpenFunc
		code  invoker.Code
		words string
	}{
		{"not opened", func(context.Context, string) (*converse.Conversation, error) { return nil, fault }, invoker.ExecutionFailed, "failed"},
		{"refused", func(context.Context, string) (*converse.Conversation, error) {
			return nil, invoker.Failf(invoker.Denied, "not you")
		}, invoker.Denied, "not you"},
		{"none", func(context.Context, string) (*converse.Conversation, error) { return nil, nil }, invoker.ExecutionFailed, "failed"},
		{
			"overloaded", modelThatFails(&converse.ModelError{Message: "hunter2", Retryable: true}), invoker.Unavailable,
			"is still open: call again with it and without a message.",
		},
		{"broken", modelThatFails(fault), invoker.ExecutionFailed, "is still open: call again with it and without a message."},
		{"closed", func(ctx context.Context, id string) (*converse.Conversation, error) {
			talk, _ := (&parrot{}).open(ctx, id)
			return talk, talk.Close(ctx)
		}, invoker.NotFound, "has ended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool := newTool(t, test.open, &agenttool.Options{Kept: 1})
			for range 2 { // what failed leaves room
				_, failure := say(t.Context(), tool, "hello", "")
				if failure == nil || failure.Code != test.code || !strings.Contains(failure.Message, test.words) ||
					strings.Contains(failure.Message, "hunter2") {
					t.Errorf("%v", failure)
				}
			}
		})
	}
	if tool, err := agenttool.New(nil, nil); err == nil {
		t.Errorf("NewTool(nil) returns %v", tool)
	}
}

func modelThatFails(err error) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(conversetest.NewScript(conversetest.Line{Err: err}), nil, &converse.Options{ID: id}), nil
	}
}

// The end of a call ends its turn, and the conversation can continue; Close ends
// everything, including conversations that are being opened.
func TestToolEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parrot{}
		opening, closed := false, 0
		tool := newTool(t, func(ctx context.Context, id string) (*converse.Conversation, error) {
			if opening {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			roster, err := ensemble.NewRoster(ensemble.New("local", &closing{count: &closed}, nil))
			return converse.New(p, roster, &converse.Options{ID: id, OwnRoster: true}), err
		}, nil)
		first, failure := say(t.Context(), tool, "hello", "")
		if failure != nil {
			t.Fatal(failure)
		}
		p.gate = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, failure := say(ctx, tool, "slow", first.Conversation); failure == nil || failure.Code != invoker.Timeout {
			t.Errorf("%v", failure)
		}
		opening = true
		var calls sync.WaitGroup
		for _, id := range []string{first.Conversation, ""} {
			calls.Go(func() {
				if _, failure := say(t.Context(), tool, "slow", id); failure == nil || failure.Code != invoker.Canceled {
					t.Errorf("%q: %v", id, failure)
				}
			})
		}
		synctest.Wait()
		if err := tool.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if closed != 1 {
			t.Errorf("%d connections were closed", closed)
		}
		calls.Wait()
		if err := tool.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, id := range []string{first.Conversation, ""} {
			if _, failure := say(t.Context(), tool, "more", id); failure == nil || failure.Code != invoker.Canceled {
				t.Errorf("after Close: %v", failure)
			}
		}
	})
}

// Many callers at once, with little room: whoever has a conversation gets its
// own answers.
func TestToolConcurrently(t *testing.T) {
	tool := newTool(t, (&parrot{}).open, &agenttool.Options{Kept: 4, Idle: time.Millisecond})
	var all sync.WaitGroup
	for n := range 16 {
		ctx := invoker.WithTrusted(t.Context(), userID.Value(int64(n)))
		all.Go(func() {
			id, turns := "", 0
			for range 20 {
				got, failure := say(ctx, tool, fmt.Sprint(n), id)
				switch {
				case failure == nil:
					turns++
					if got.Answer != fmt.Sprint(turns, " ", n) {
						t.Errorf("%d is answered %q in turn %d", n, got.Answer, turns)
					}
					id = got.Conversation
				case failure.Code == invoker.NotFound, failure.Code == invoker.Unavailable:
					id, turns = "", 0
				default:
					t.Error(failure)
				}
			}
		})
	}
	all.Wait()
}
