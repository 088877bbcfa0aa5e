// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// scenario is a conversation that a file in testdata holds.
type scenario struct {
	name    string
	down    error // of a model that is asked first
	lines   []conversetest.Line
	options converse.Options
	code    bool // there is the tool that runs programs
	// hold plays the conversation through the recorder; nil sends one message.
	hold func(t *testing.T, talk *converse.Conversation, record *conversetest.Recorder)
}

var (
	weather = conversetest.Call{Name: "local__weather", Arguments: `{"text":"Oslo: -4 °C"}`}
	failing = conversetest.Call{Name: "local__fail", Arguments: `{"text":"no station in Atlantis"}`}
	stuck   = conversetest.Call{Name: "local__wait", Arguments: ``}
)

func scenarios() []scenario {
	return []scenario{
		{
			name: "program", code: true, options: converse.Options{Limits: converse.Limits{Parallel: 1}},
			lines: []conversetest.Line{
				{Calls: []conversetest.Call{
					{Name: "code__run_code", Arguments: `{"program":"a = gather(lambda t: local__weather(text=t), [\"x\", \"y\", \"x\"])\nv, e = attempt(local__fail, text=\"z\")\nreturn a + [e[\"code\"]]"}`}, weather,
				}},
				{Text: "Done."},
			},
		},
		{
			name: "answer",
			lines: []conversetest.Line{
				{Text: "Hello to you, whoever you are.", Usage: &canister.Usage{Input: 20, Output: 8}},
				{Reasoning: "Again? Very well, again.", Text: "And once more."},
			},
			options: converse.Options{Instructions: "Answer in one sentence."},
			hold: func(t *testing.T, talk *converse.Conversation, record *conversetest.Recorder) {
				drain(t, record.Send(t.Context(), canister.Text("Hello.")))
				document := canister.Document{Title: "Manners", Content: canister.Texts("Greet twice.")}
				user := canister.User{Content: []canister.Content{canister.Text("-- Hello? --\n"), canister.ImageContent{URL: "https://example.com/x"}}}
				if err := talk.Add(t.Context(), document, user); err != nil {
					t.Fatal(err)
				}
				drain(t, record.Continue(t.Context()))
			},
		},
		{
			name: "parallel",
			lines: []conversetest.Line{
				{Text: "Let me look.", Calls: []conversetest.Call{weather, failing, weather, {Name: "local__progress", Arguments: `{"steps":2}`}}},
				{Text: "Cold in Oslo."},
			},
		},
		{
			name: "unknown-tool",
			lines: []conversetest.Line{
				{Calls: []conversetest.Call{{Name: "local__wether", Arguments: `{}`}, {Name: "local__weather", Arguments: `{"text":`}}},
				{Text: "I cannot tell."},
			},
		},
		{
			name:    "limit",
			lines:   []conversetest.Line{{Calls: []conversetest.Call{weather}}, {Calls: []conversetest.Call{weather}}},
			options: converse.Options{Limits: converse.Limits{Exchanges: 2}},
		},
		{
			name:  "approval",
			lines: []conversetest.Line{{Calls: []conversetest.Call{failing, weather}}, {Text: "Not without you."}},
			options: converse.Options{Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
				if ask.Tool == "fail" {
					return converse.Deny("it would fail"), nil
				}
				return converse.Change(json.RawMessage(`{"text":"Oslo: changed"}`)), nil
			}},
		},
		{
			name:  "cancelled",
			lines: []conversetest.Line{{Calls: []conversetest.Call{stuck, {Name: "nowhere", Arguments: "{}"}}}, {Text: "What now?"}},
			hold: func(t *testing.T, _ *converse.Conversation, record *conversetest.Recorder) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var waiting, missing bool // what happens side by side has to have happened
				over := func(event converse.Event) bool {
					switch event.(type) {
					case converse.InvocationProgressed:
						waiting = true
					case converse.InvocationCompleted:
						missing = true
					}
					return waiting && missing
				}
				if err := until(record.Send(ctx, canister.Text("Go.")), over, cancel); !errors.Is(err, context.Canceled) {
					t.Errorf("the turn ends with %v", err)
				}
				drain(t, record.Send(t.Context(), canister.Text("And?")))
			},
		},
		{
			name:  "cancelled-before",
			lines: []conversetest.Line{{Text: "Here."}},
			hold: func(t *testing.T, _ *converse.Conversation, record *conversetest.Recorder) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := until(record.Send(ctx, canister.Text("Go.")), nil, nil); !errors.Is(err, context.Canceled) {
					t.Errorf("the turn ends with %v", err)
				}
				drain(t, record.Send(t.Context(), canister.Text("Are you there?")))
			},
		},
		{
			name:  "cancelled-text",
			lines: []conversetest.Line{{Text: "Half of an answer, and the other half of it."}},
			hold: func(t *testing.T, _ *converse.Conversation, record *conversetest.Recorder) {
				ctx, cancel := context.WithCancel(t.Context())
				over := func(event converse.Event) bool { _, ok := event.(converse.TextDelta); return ok }
				if err := until(record.Send(ctx, canister.Text("Go.")), over, cancel); !errors.Is(err, context.Canceled) {
					t.Errorf("the turn ends with %v", err)
				}
			},
		},
		{
			name: "failure", // of a sort that fakes could take for something else
			lines: []conversetest.Line{
				{Calls: []conversetest.Call{{Name: "local__odd", Arguments: "{}"}, weather}}, {Text: "Odd."},
			},
		},
		{
			name: "left",
			lines: []conversetest.Line{
				{Text: "Half of an answer, and the other half of it."},
				{Calls: []conversetest.Call{stuck}},
				{Text: "Whole."},
			},
			hold: func(t *testing.T, _ *converse.Conversation, record *conversetest.Recorder) {
				pieces := 0
				for event := range record.Send(t.Context(), canister.Text("Go.")) {
					if _, ok := event.(converse.TextDelta); ok {
						if pieces++; pieces == 2 {
							break
						}
					}
				}
				for event := range record.Send(t.Context(), canister.Text("Again.")) {
					if _, ok := event.(converse.InvocationProgressed); ok {
						break
					}
				}
				drain(t, record.Continue(t.Context()))
			},
		},
		{
			name:    "time-limit",
			lines:   []conversetest.Line{{Calls: []conversetest.Call{weather, stuck}}},
			options: converse.Options{Limits: converse.Limits{Time: time.Minute / 4}},
		},
		{
			name:    "time-limit-of-model",
			lines:   []conversetest.Line{{Text: "Half of it.", Wait: make(chan struct{})}},
			options: converse.Options{Limits: converse.Limits{Time: time.Minute / 4}},
		},
		{
			name:  "fallback",
			down:  &converse.ModelError{Message: "overloaded", Status: 529, Retryable: true},
			lines: []conversetest.Line{{Text: "Whole."}},
		},
		{
			name: "model-error",
			lines: []conversetest.Line{
				{
					Retries: []converse.Retry{{Attempt: 1, Wait: time.Second, Err: errors.New("overloaded")}},
					Text:    "Half", Err: &converse.ModelError{Message: "overloaded", Status: 503, Retryable: true},
				},
				{Text: "Whole."},
			},
			hold: func(t *testing.T, _ *converse.Conversation, record *conversetest.Recorder) {
				if err := until(record.Send(t.Context(), canister.Text("Go.")), nil, nil); err == nil {
					t.Error("the turn ends without an error")
				}
				drain(t, record.Continue(t.Context()))
			},
		},
	}
}

// until runs a turn to its end and calls do at the first event that matches.
func until(run func(func(converse.Event, error) bool), match func(converse.Event) bool, do func()) (err error) {
	for event, failure := range run {
		if failure != nil {
			err = failure
		} else if match != nil && match(event) {
			do()
		}
	}
	return err
}

func drain(t *testing.T, run func(func(converse.Event, error) bool)) {
	t.Helper()
	if err := until(run, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// roster has the tools of the scenario.
func (s scenario) roster(t *testing.T) *ensemble.Roster {
	t.Helper()
	if s.code {
		return testRoster(t, runcode.Ensemble("code", nil))
	}
	return testRoster(t)
}

// testRoster has the tools of the scenarios.
func testRoster(t *testing.T, more ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	tools := ensembletest.ServerTools()
	report := ensembletest.NewTool("weather", tools[0].(*ensembletest.Tool).Invoke)
	report.Def.Hints.ReadOnly = true
	odd := ensembletest.Fails("odd", &invoker.Failure{
		Code: invoker.Canceled, Message: "the meter was switched off", Retryable: true,
		Metadata: canister.Fields{"meter": json.RawMessage("7")},
	})
	odd.Def.Exclusive = true
	roster, err := ensemble.NewRoster(append(more, ensemble.Local("local", append(tools, report, odd)...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return roster
}

// play holds the conversation of a scenario and returns its transcript.
func (s scenario) play(t *testing.T) *conversetest.Transcript {
	t.Helper()
	script := conversetest.NewScript(s.lines...)
	model := converse.Model(script)
	if s.down != nil {
		model = converse.Chain(conversetest.NewScript(conversetest.Line{Err: s.down}), script)
	}
	got := s.record(t, model)
	if err := script.Err(); err != nil {
		t.Error(err)
	}
	return got
}

// record holds the conversation of a scenario with a model and returns its transcript.
func (s scenario) record(t *testing.T, model converse.Model) *conversetest.Transcript {
	t.Helper()
	roster := s.roster(t)
	talk := converse.New(model, roster, &s.options)
	record := conversetest.Record(talk, roster)
	if s.hold != nil {
		s.hold(t, talk, record)
	} else {
		drain(t, record.Send(t.Context(), canister.Text("Is it cold?")))
	}
	got, err := record.Transcript()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s scenario) path() string { return filepath.Join("testdata", s.name+".txtar") }

// synced runs a test of a scenario in a bubble, which has a clock of its own
// and fails when anything is left.
func synced(t *testing.T, s scenario, test func(*testing.T, scenario)) {
	t.Run(s.name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, inside := range scenarios() { // channels must be of the bubble
				if inside.name == s.name {
					test(t, inside)
				}
			}
		})
	})
}

func TestTranscripts(t *testing.T) {
	for _, s := range scenarios() {
		synced(t, s, func(t *testing.T, s scenario) {
			conversetest.CompareFile(t, s.path(), s.play(t), *update)
		})
	}
}

// Each file is replayed, with the tools themselves and with their recorded results.
func TestReplay(t *testing.T) {
	for _, s := range scenarios() {
		synced(t, s, func(t *testing.T, s scenario) {
			want := s.play(t)
			for round := range 10 { // the order of what runs side by side differs
				for name, roster := range map[string]*ensemble.Roster{"tools": s.roster(t), "fakes": nil} {
					got, err := want.Replay(t.Context(), roster, &s.options)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if difference := conversetest.Diff(want, got); difference != "" {
						t.Fatalf("round %d with %s: %s", round, name, difference)
					}
				}
			}
		})
	}
}

// What is played again differs when the program does.
func TestReplayFinds(t *testing.T) {
	var parallel scenario
	for _, s := range scenarios() {
		if s.name == "parallel" {
			parallel = s
		}
	}
	want := parallel.play(t)
	other, err := ensemble.NewRoster(ensemble.Local("local", invoker.Invoker(ensembletest.Returns("weather", "warm"))))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for _, test := range []struct {
		name    string
		roster  *ensemble.Roster
		options *converse.Options
		want    string
	}{
		{"other tools", other, nil, `section "tools", line 1`},
		{"a limit", nil, &converse.Options{Limits: converse.Limits{Exchanges: 1}}, `got {"event":"turn_completed","reason":"exchange_limit"`},
		{"a denial", nil, &converse.Options{Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Deny("no"), nil
		}}, `want {"event":"invocation_started"`},
		{"a bound", nil, &converse.Options{Limits: converse.Limits{ResultBytes: 20}}, `section "turn 1/canisters", line 7`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := want.Replay(t.Context(), test.roster, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if difference := conversetest.Diff(want, got); !strings.Contains(difference, test.want) {
				t.Errorf("the difference is %q, want %q", difference, test.want)
			}
		})
	}
}

// A transcript that is cut off, or that nothing can follow, does not hang.
func TestReplayAfterChange(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"empty", ""},
		{"no events", "-- turn 1/events --\n"},
		{
			"no reply",
			"-- turn 1/given --\n{\"kind\":\"user\",\"id\":\"u1\"}\n-- turn 1/events --\n{\"event\":\"message_started\"}\n" +
				"{\"event\":\"message_completed\",\"canister\":{}}\n",
		},
		{"unanswered", "-- turn 1/given --\n{\"kind\":\"user\",\"id\":\"u1\"}\n-- turn 1/events --\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			transcript, err := conversetest.ParseTranscript([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := transcript.Replay(ctx, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseTranscript(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"-- notes --\nx\n", `section "notes", line 1: no section has this name`},
		{"-- turn 1/notes --\nx\n", `section "turn 1/notes", line 1`},
		{"-- turn 2/events --\n", `turn 2 follows turn 0`},
		{"-- turn 1/events --\n{\"event\":\"x\"}\n\n{\"event\":\n", `section "turn 1/events", line 3`},
		{"-- turn 1/canisters --\n{\"kind\":\"x\"}\n", `unknown kind`},
		{"-- tools --\n[]\n", `section "tools", line 1`},
	} {
		if _, err := conversetest.ParseTranscript([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q gives %v, want %q", test.text, err, test.want)
		}
	}
}

func TestDiff(t *testing.T) {
	const one, two = "-- turn 1/events --\n{}\n", "-- turn 2/events --\n{}\n"
	const given = "-- turn 1/given --\n{\"kind\":\"user\"}\n"
	for _, test := range []struct{ want, got, difference string }{
		{one, one, ""},
		{"Prose.\n" + one, "Other prose.\n\n" + one, ""},
		{one, one + two, `there is an unexpected section "turn 2/events"`},
		{one + two, one, `there is no section "turn 2/events"`},
		{given + one, one, `there is a section "turn 1/events" instead of "turn 1/given"`},
		{one, "-- turn 1/events --\n{}\n\n{\"event\":\"x\"}\n", "section \"turn 1/events\", line 2:\nwant (nothing)\n got {\"event\":\"x\"}"},
		{one, "-- turn 1/events --\n", "section \"turn 1/events\", line 1:\nwant {}\n got (nothing)"},
	} {
		want, err := conversetest.ParseTranscript([]byte(test.want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := conversetest.ParseTranscript([]byte(test.got))
		if err != nil {
			t.Fatal(err)
		}
		if difference := conversetest.Diff(want, got); difference != test.difference {
			t.Errorf("%q and %q differ by %q, want %q", test.want, test.got, difference, test.difference)
		}
	}
}

// What Format writes, ParseTranscript reads.
func FuzzParseTranscript(f *testing.F) {
	for _, text := range []string{"-- tools --\n{}\n-- turn 1/events --\n! the caller leaves\n-- turn 2/given --\n{\"kind\":\"user\"}\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		transcript, err := conversetest.ParseTranscript(data)
		if err != nil {
			return
		}
		again, err := conversetest.ParseTranscript(transcript.Format())
		if err != nil {
			t.Fatalf("%v:\n%s", err, transcript.Format())
		}
		if difference := conversetest.Diff(transcript, again); difference != "" || !bytes.Equal(transcript.Format(), again.Format()) {
			t.Errorf("%s:\n%s\n%s", difference, transcript.Format(), again.Format())
		}
		transcript.Script()
	})
}

// CompareFile fails for a file that differs, and keeps comments.
func TestCompareFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txtar")
	first, err := conversetest.ParseTranscript([]byte("What this shows.\n-- turn 1/events --\n{\"event\":\"message_started\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := conversetest.ParseTranscript([]byte("-- turn 1/events --\n{\"event\":\"message_started\"}\n{\"event\":\"x\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	conversetest.CompareFile(t, path, first, true)
	conversetest.CompareFile(t, path, first, false)
	double := &failures{TB: t}
	conversetest.CompareFile(double, path, second, false)
	if want := "line 2:\nwant (nothing)\n got {\"event\":\"x\"}"; !strings.Contains(double.said, want) {
		t.Errorf("the test fails with %q, want %q", double.said, want)
	}
	conversetest.CompareFile(t, path, second, true)
	conversetest.CompareFile(t, path, second, false)
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "What this shows.\n\n"+string(second.Format()) {
		t.Errorf("the file is %s (%v)", data, err)
	}
}

// failures records the errors of a test.
type failures struct {
	testing.TB
	said string
}

func (f *failures) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }
func (f *failures) Fatalf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }
