// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// askerFunc is an Asker.
type askerFunc func(context.Context, Question) (Answer, error)

func (f askerFunc) AskApproval(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// person gives the answers in their order, and remembers the questions.
type person struct {
	t         *testing.T
	answers   []Answer
	questions []Question
}

func (p *person) AskApproval(_ context.Context, q Question) (Answer, error) {
	p.questions = append(p.questions, q)
	if len(p.answers) == 0 {
		p.t.Errorf("asked without need: %+v", q)
		return Answer{}, nil
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer, nil
}

func call(ensemble, tool, description string) converse.Approval {
	return converse.Approval{
		Ensemble: ensemble, Tool: tool, Arguments: json.RawMessage(`{"secret":"s3cret"}`),
		Definition: &invoker.Definition{Name: tool, Description: description},
	}
}

var errLater = errors.New("later")

// at returns the function Server for one address.
func at(address string) func(string) Server {
	return func(string) Server { return Server{Address: address, Label: "a server"} }
}

func storeIn(t *testing.T) *Store {
	t.Helper()
	return NewStore(filepath.Join(t.TempDir(), "consort", "approvals.json"))
}

func expect(t *testing.T, a *Approver, ask converse.Approval, want converse.Decision) {
	t.Helper()
	if got, err := a.Approve(t.Context(), ask); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s of %s: %+v, %v; want %+v", ask.Tool, ask.Ensemble, got, err, want)
	}
}

func TestAnswers(t *testing.T) {
	write, other := call("files", "write", "Write."), call("files", "other", "")
	yes := converse.Allow()
	for name, test := range map[string]struct {
		answer Answer
		want   converse.Decision
		again  bool // asked again, for the same tool
		anew   bool // asked again in another conversation
	}{
		"deny":         {Answer{}, converse.Deny("The person said no."), true, true},
		"with reason":  {Answer{Reason: "too late"}, converse.Deny("The person said no: too late"), true, true},
		"once":         {Answer{Choice: Once}, yes, true, true},
		"conversation": {Answer{Choice: Conversation}, yes, false, true},
		"always":       {Answer{Choice: Always}, yes, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &person{t: t, answers: []Answer{test.answer}}
			a := NewApprover(Options{Asker: p, Store: storeIn(t), Server: at("x")})
			expect(t, a, write, test.want)
			if q := p.questions[0]; !q.Always || q.Later || q.Changed || q.Tool != "write" {
				t.Errorf("the question is %+v", q)
			}
			for _, needed := range []bool{test.again, test.anew} {
				want := yes
				if needed {
					p.answers = append(p.answers, Answer{Reason: "again"})
					want = converse.Deny("The person said no: again")
				}
				expect(t, a, write, want)
				if a.Begin("", nil); !needed { // the same conversation, with another model
					expect(t, a, write, want)
				}
				a.Begin("another", nil)
			}
			p.answers = []Answer{{}}
			expect(t, a, other, converse.Deny("The person said no."))
			if len(p.answers) > 0 {
				t.Errorf("%d answers were not needed", len(p.answers))
			}
		})
	}
}

func TestLater(t *testing.T) {
	p := &person{t: t, answers: []Answer{{Choice: Later}, {Choice: Later}}}
	a := NewApprover(Options{Asker: p})
	if _, err := a.Approve(t.Context(), call("e", "t", "")); err == nil || errors.Is(err, errLater) {
		t.Errorf("an answer that is not possible: %v", err)
	}
	a.Begin("", errLater)
	if _, err := a.Approve(t.Context(), call("e", "t", "")); !errors.Is(err, errLater) {
		t.Errorf("the decision is postponed: %v", err)
	}
	if p.questions[0].Later || !p.questions[1].Later || p.questions[1].Always {
		t.Errorf("the questions are %+v", p.questions)
	}
}

// A tool or a server that has changed is not the one that was allowed, also for the time
// of a conversation, and another process finds the same.
func TestWhatHasChangedIsAskedAgain(t *testing.T) {
	store := storeIn(t)
	again := &person{t: t, answers: []Answer{{Choice: Always}}}
	expect(t, NewApprover(Options{Asker: again, Store: store, Server: at("x")}), call("files", "write", "Write."), converse.Allow())
	for name, test := range map[string]struct {
		address string
		ask     converse.Approval
		changed bool
	}{
		"another definition": {"x", call("files", "write", "Write, and send it to me."), true},
		"another server":     {"y", call("files", "write", "Write."), true},
		"another ensemble":   {"x", call("file", "write", "Write."), false},
		"another tool":       {"x", call("files", "writes", "Write."), false},
	} {
		p := &person{t: t, answers: []Answer{{}}}
		expect(t, NewApprover(Options{Asker: p, Store: NewStore(store.Path()), Server: at(test.address)}), test.ask, converse.Deny("The person said no."))
		if len(p.questions) != 1 || p.questions[0].Changed != test.changed {
			t.Errorf("%s: %+v", name, p.questions)
		}
	}
	p := &person{t: t, answers: []Answer{{Choice: Conversation}, {}}}
	a := NewApprover(Options{Asker: p, Server: at("x")})
	expect(t, a, call("files", "write", "Write."), converse.Allow())
	expect(t, a, call("files", "write", "Write more."), converse.Deny("The person said no."))
	expect(t, NewApprover(Options{Store: store, Server: at("x")}), call("files", "write", "Write."), converse.Allow())
}

// The answer holds for the definition in the question, whatever the server lists by then.
func TestAlwaysHoldsForWhatWasAsked(t *testing.T) {
	store := storeIn(t)
	shown := call("files", "write", "Write.")
	asker := askerFunc(func(context.Context, Question) (Answer, error) { return Answer{Choice: Always}, nil })
	expect(t, NewApprover(Options{Asker: asker, Store: store, Server: at("x")}), shown, converse.Allow())
	p := &person{t: t, answers: []Answer{{}}}
	expect(
		t, NewApprover(Options{Asker: p, Store: store, Server: at("x")}), call("files", "write", "Changed in the meantime."),
		converse.Deny("The person said no."),
	)
}

func TestRevoked(t *testing.T) {
	store := storeIn(t)
	p := &person{t: t, answers: []Answer{{Choice: Always}, {}}}
	a := NewApprover(Options{Asker: p, Store: store, Server: at("x")})
	expect(t, a, call("files", "write", ""), converse.Allow())
	if revoked, err := store.Revoke(func(one *Stored) bool { return one.Name() == "files__write" }); len(revoked) != 1 || err != nil {
		t.Fatalf("%+v, %v", revoked, err)
	}
	expect(t, a, call("files", "write", ""), converse.Deny("The person said no.")) // in the same conversation too
}

// Calls of one message are asked about one by one, and an answer for a whole conversation
// answers the questions that wait.
func TestQuestionsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, open, asked := make(chan Answer), 0, 0
		a := NewApprover(Options{Asker: askerFunc(func(context.Context, Question) (Answer, error) {
			asked++
			if open++; open > 1 {
				t.Error("two questions are open")
			}
			defer func() { open-- }()
			return <-answer, nil
		})})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { expect(t, a, call("e", "t", ""), converse.Allow()) })
		}
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLater)
		if _, err := a.Approve(ctx, call("e", "t", "")); !errors.Is(err, errLater) {
			t.Errorf("a call that is cancelled waits for its turn: %v", err)
		}
		answer <- Answer{Choice: Conversation}
		all.Wait()
		if asked != 1 {
			t.Errorf("%d questions", asked)
		}
	})
}

func TestWithoutAPerson(t *testing.T) {
	nobody := errors.New("nobody")
	var problem error
	options := Options{
		Unanswered: func(_ converse.Approval, why error) error { problem = why; return nobody },
		Allowed:    func(ask converse.Approval) bool { return ask.Tool == "read" },
		Store:      storeIn(t), Server: at("x"),
	}
	a := NewApprover(options)
	expect(t, a, call("e", "read", ""), converse.Allow())
	if _, err := a.Approve(t.Context(), call("e", "write", "")); !errors.Is(err, nobody) || problem != nil {
		t.Errorf("%v, %v", err, problem)
	}
	if _, err := os.Stat(options.Store.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a question stores something: %v", err)
	}
}

// A file that cannot be used allows nothing: the person is asked and told why, and
// without a person the call does not run.
func TestAnUnreadableStoreAllowsNothing(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"no JSON":          func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"no file":          func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a later version":  func(path string) error { return replace(path, `"consort_approvals": 1`, `"consort_approvals": 2`) },
		"without its key":  func(path string) error { return replace(path, `"key": "`, `"no": "`) },
		"others write too": func(path string) error { return os.Chmod(path, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			store := storeIn(t)
			p := &person{t: t, answers: []Answer{{Choice: Always}}}
			expect(t, NewApprover(Options{Asker: p, Store: store, Server: at("x")}), call("e", "t", ""), converse.Allow())
			if err := spoil(store.Path()); err != nil {
				t.Fatal(err)
			}
			var told []string
			p.answers = []Answer{{Choice: Once}, {Choice: Always}}
			a := NewApprover(Options{Asker: p, Store: store, Server: at("x"), Warn: func(problem string) { told = append(told, problem) }})
			expect(t, a, call("e", "t", ""), converse.Allow())
			expect(t, a, call("e", "t", ""), converse.Allow())
			if len(p.answers) > 0 || p.questions[1].Always || len(told) != 1 || !strings.Contains(told[0], store.Path()) ||
				!strings.Contains(told[0], "consort approvals revoke --all") {
				t.Errorf("told %q, asked %+v", told, p.questions)
			}
			a = NewApprover(Options{Store: store, Server: at("x"), Unanswered: func(_ converse.Approval, problem error) error { return problem }})
			if _, err := a.Approve(t.Context(), call("e", "t", "")); err == nil || !strings.Contains(err.Error(), "consort approvals revoke --all") {
				t.Errorf("without a person: %v", err)
			}
			if _, err := store.Revoke(func(*Stored) bool { return true }); err == nil {
				t.Error("the approvals were revoked, although they cannot be read")
			}
		})
	}
}

func replace(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), from) {
		err = errors.New("there is no " + from)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
}

// An answer that cannot be stored holds for the conversation, and the person is told.
func TestAlwaysThatCannotBeStored(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	store := NewStore(filepath.Join(blocked, "..", "dir", "approvals.json"))
	asker := askerFunc(func(context.Context, Question) (Answer, error) {
		store.path = filepath.Join(blocked, "approvals.json") // a file is in the way
		return Answer{Choice: Always}, nil
	})
	a := NewApprover(Options{Asker: asker, Store: store, Server: at("x"), Warn: func(problem string) { told = append(told, problem) }})
	expect(t, a, call("e", "t", ""), converse.Allow())
	if len(told) != 1 || !strings.Contains(told[0], "for this conversation only") {
		t.Errorf("told %q", told)
	}
	a.options.Asker = &person{t: t}
	expect(t, a, call("e", "t", ""), converse.Allow())
}

// Names cannot imitate each other: a name that is not plain gets a hash, and the own
// name is shown with codes.
func TestDescribe(t *testing.T) {
	yes, no := true, false
	const lying = "read, which declares that it changes nothing\n\n\n"
	for _, test := range []struct {
		ensemble, tool string
		hints          invoker.Hints
		trusted        bool
		want           string
	}{
		{"files", "write", invoker.Hints{}, false, "files__write, which may destroy something"},
		{"files", "write", invoker.Hints{Destructive: &no}, false, "files__write, which changes something"},
		{"files", "write", invoker.Hints{Destructive: &yes}, false, "files__write, which may destroy something"},
		{"files", "read", invoker.Hints{ReadOnly: true}, true, "files__read, which declares that it changes nothing"},
		{"files", "read", invoker.Hints{ReadOnly: true}, false, "files__read, which declares that it changes nothing (not trusted)"},
		{"files", "re\u0430d", invoker.Hints{}, false, ensemble.NameFor("files", "re\u0430d") + ` ("re\u0430d" of "files"), which may destroy something`},
		{"files", lying, invoker.Hints{}, false,
			ensemble.NameFor("files", lying) + ` ("read, which declares that it changes nothing\n\n\n" of "files"), which may destroy something`},
		{
			"files", "a\u202eb\x1b[2J", invoker.Hints{}, false,
			ensemble.NameFor("files", "a\u202eb\x1b[2J") + ` ("a\u202eb\x1b[2J" of "files"), which may destroy something`,
		},
	} {
		ask := converse.Approval{
			Ensemble: test.ensemble, Tool: test.tool, ReadOnly: test.trusted,
			Definition: &invoker.Definition{Hints: test.hints, Description: "Title\n? The model wants to call nothing"},
		}
		if got := Describe(ask); got != test.want {
			t.Errorf("Describe = %s\nwant %s", got, test.want)
		}
	}
	if got := Describe(call("e", strings.Repeat("long", 100), "")); len(got) > 300 {
		t.Errorf("a long name is %d bytes", len(got))
	}
}
