// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/converse/internal/logtail"
	"github.com/consort-go/consort/internal/testing/raced"
)

// grower makes a history as the loop would, with calls in parallel whose results
// come in any order, and compacts it whenever Next says so.
type grower struct {
	t       testing.TB
	random  *rand.Rand
	policy  Policy
	usage   bool // whether the model's server counts
	n       int
	history []canister.Canister
}

func (g *grower) head() canister.Head {
	g.n++
	return canister.Head{ID: fmt.Sprintf("c%d", g.n), Time: time.Unix(int64(g.n), 0)}
}

func (g *grower) text(most int) []canister.Content {
	return canister.Texts(strings.Repeat("word ", g.random.IntN(most)/5+1))
}

func (g *grower) add(canisters ...canister.Canister) { g.history = append(g.history, canisters...) }

// turn adds a message of the user and up to four exchanges, and reports each
// moment at which the model is asked.
func (g *grower) turn(asked func()) {
	if g.random.IntN(8) == 0 {
		g.add(canister.Supervisor{Head: g.head(), Content: g.text(50)})
	}
	if g.random.IntN(5) == 0 {
		g.add(canister.Document{Head: g.head(), Title: "d", Content: g.text(400)})
	}
	g.add(canister.User{Head: g.head(), Content: g.text(300)})
	for range 1 + g.random.IntN(4) {
		for {
			command, ok := Next(g.history, g.policy, time.Unix(int64(g.n), 0)).(Compact)
			if !ok {
				break
			}
			g.compact(command)
		}
		asked()
		g.exchange()
	}
	g.add(canister.Assistant{Head: g.head(), Content: g.text(300), Finish: canister.FinishStop})
}

func (g *grower) exchange() {
	message := canister.Assistant{Head: g.head(), Finish: canister.FinishInvocations}
	if g.usage {
		message.Usage = &canister.Usage{Output: 20}
		for _, c := range (&compaction.View{}).Of(g.history) {
			message.Usage.Input += compaction.TokensOf(c) * 3 / 4
		}
	}
	g.add(message)
	var results []canister.Canister
	for i := range 1 + g.random.IntN(3) {
		call := canister.Invocation{Head: g.head(), Message: message.ID, CallID: fmt.Sprint(i), Name: "t", Arguments: `{"a":1}`}
		g.add(call)
		result := canister.Result{Head: g.head(), Invocation: call.ID, Content: g.text(6000)}
		if g.random.IntN(6) == 0 {
			result.Content = append(result.Content, canister.ImageContent{MIME: "image/png", Data: make([]byte, g.random.IntN(9000))})
		}
		results = append(results, result)
	}
	g.random.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	for _, result := range results {
		if g.random.IntN(2) == 0 {
			g.add(canister.Intent{Head: g.head(), Invocation: result.(canister.Result).Invocation, Attempt: 1})
		}
		g.add(result)
	}
}

// compact does what the loop does, with a summary of chance.
func (g *grower) compact(command Compact) {
	document := canister.Document{Head: g.head(), Content: canister.Texts("cut")}
	if command.Trim == 0 {
		document.Content = canister.Texts("summary " + strings.Repeat("s", g.random.IntN(300)))
		command.After = command.Before - command.plan.Hidden + compaction.TokensOf(document)
	}
	if command.After >= command.Before {
		g.t.Fatalf("a compaction gains nothing: %+v", command)
	}
	document.Metadata = compaction.MarkedBy((&logtail.Map{}).Mark(g.history, &command.plan, command.After), nil)
	g.add(document)
}

func viewTokens(told []canister.Canister) (tokens int64) {
	for _, c := range told {
		tokens += compaction.TokensOf(c)
	}
	return tokens
}

// Over random conversations: what a model is told is sound, has whole exchanges,
// is the same however it came about, begins with what it was before unless there
// was a compaction, keeps instructions and the latest words of the user, and
// stays within the window.
func TestViews(t *testing.T) {
	for seed := range raced.Fewer(60) {
		random := rand.New(rand.NewPCG(uint64(seed), 6))
		window := int64(3000 + random.IntN(20000))
		g := &grower{t: t, random: random, usage: seed%2 == 0, policy: Policy{
			Limits:     Limits{Exchanges: -1},
			Compaction: &Compaction{Window: window, Keep: random.IntN(6), Trim: []int{0, -1, 100}[random.IntN(3)]},
		}}
		var growing compaction.View
		var before []canister.Canister
		var compactions, known int
		check := func() {
			told := growing.Of(g.history)
			if problems := sequence.Check(told); problems != nil {
				t.Fatalf("seed %d: %v", seed, problems[0])
			}
			if fresh := (&compaction.View{}).Of(g.history); !reflect.DeepEqual(fresh, told) {
				t.Fatalf("seed %d: told at once it is another", seed)
			}
			again := roundTrip(t, g.history)
			if !reflect.DeepEqual(Next(again, g.policy, time.Unix(9, 0)), Next(g.history, g.policy, time.Unix(9, 0))) {
				t.Fatalf("seed %d: Next is another for the same history", seed)
			}
			compacted := slices.ContainsFunc(g.history[known:], func(c canister.Canister) bool { _, ok := compaction.MarkOf(c); return ok })
			if compacted {
				compactions++
			} else if !slices.EqualFunc(before, told[:len(before)], func(a, b canister.Canister) bool { return reflect.DeepEqual(a, b) }) {
				t.Fatalf("seed %d: what was told before is not the beginning", seed)
			}
			before, known = told, len(g.history)
			checkKept(t, g.history, told)
			// One exchange of three long results is the most that comes between.
			if most := window + 3*(2100+1000) + 1000; viewTokens(told) > most && g.policy.Compaction.Keep != 0 {
				t.Fatalf("seed %d: %d tokens of %d", seed, viewTokens(told), window)
			}
		}
		for range 12 {
			g.turn(check)
		}
		if window < 6000 && compactions == 0 {
			t.Errorf("seed %d: never compacted", seed)
		}
	}
}

// checkKept expects all instructions, in order and in front of what they were in
// front of, and the user's latest words.
func checkKept(t *testing.T, history, told []canister.Canister) {
	t.Helper()
	supervisors := func(all []canister.Canister) (ids []string) {
		for _, c := range all {
			if c.Kind() == canister.KindSupervisor {
				ids = append(ids, c.Header().ID)
			}
		}
		return ids
	}
	if !slices.Equal(supervisors(history), supervisors(told)) {
		t.Fatalf("instructions are missing: %v of %v", supervisors(told), supervisors(history))
	}
	user := history[compaction.LastUser(history)].Header().ID
	if !slices.ContainsFunc(told, func(c canister.Canister) bool { return c.Header().ID == user }) {
		t.Fatal("the latest words of the user are missing")
	}
}

// roundTrip writes a history and reads it.
func roundTrip(t *testing.T, history []canister.Canister) []canister.Canister {
	t.Helper()
	var read []canister.Canister
	for _, c := range history {
		line, err := canister.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := canister.Unmarshal(line)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, again)
	}
	return read
}

// Where the exchanges that stay fill the window, nothing is compacted for little.
func TestNothingToGain(t *testing.T) {
	var history []canister.Canister
	add := func(id string, bytes int, usage *canister.Usage) {
		history = append(history,
			canister.User{Head: canister.Head{ID: "u" + id}, Content: canister.Texts(strings.Repeat("x", bytes))},
			canister.Assistant{Head: canister.Head{ID: "m" + id}, Usage: usage})
	}
	add("1", 300, nil)
	add("2", 24000, nil)
	history = append(history, canister.User{Head: canister.Head{ID: "u3"}, Content: canister.Texts("more")})
	policy := Policy{Compaction: &Compaction{Window: 9000, Keep: 1}}
	if command, ok := Next(history, policy, time.Unix(0, 0)).(Exchange); !ok {
		t.Errorf("%d of 9000 tokens, and next is %+v", compaction.RequestTokens(history), command)
	}
	policy.Compaction.Window = 8000 // which is full: what there is has to go
	if _, ok := Next(history, policy, time.Unix(0, 0)).(Compact); ok {
		t.Error("a hundred tokens are not worth a summary")
	}
	policy.Compaction.Keep, policy.Compaction.Window = 4, 9000
	history = history[:0]
	add("1", 6000, nil)
	add("2", 18000, nil)
	history = append(history, canister.User{Head: canister.Head{ID: "u3"}, Content: canister.Texts("more")})
	if command, ok := Next(history, policy, time.Unix(0, 0)).(Compact); !ok || command.Through != "m1" || command.Trim != 0 {
		t.Errorf("next is %+v", command)
	}
	policy.Compaction.At = 0.0001 // of which there is less than has to be gained
	if command, ok := Next(history[len(history)-1:], policy, time.Unix(0, 0)).(Exchange); !ok {
		t.Errorf("next is %+v", command)
	}
}

// far is a canister that nobody has any business with.
type far struct{ canister.Canister }

// The cost of a step does not grow with what came before the window: what a
// summary stands for is not looked at again.
func TestOldHistoryIsNotLookedAt(t *testing.T) {
	g := &grower{t: t, random: rand.New(rand.NewPCG(1, 1)), usage: true, policy: Policy{Compaction: &Compaction{Window: 8000}}}
	var growing compaction.View
	turns := 0
	for m := compaction.ReadMarks(nil); m.Through < 30 || m.User >= 0; m = compaction.ReadMarks(g.history) {
		g.turn(func() { growing.Of(g.history) })
		if turns++; turns > 100 {
			t.Fatal("never compacted")
		}
	}
	g.add(canister.User{Head: g.head(), Content: canister.Texts("again")})
	want := growing.Of(g.history)
	through := compaction.ReadMarks(g.history).Through
	for i := range through {
		g.history[i] = far{}
	}
	g.history[through-1] = canister.Document{Head: canister.Head{Extra: canister.Extra{Metadata: compaction.MarkedBy(compaction.Mark{Through: "nobody"}, nil)}}}
	if _, ok := Next(g.history, g.policy, time.Unix(1, 0)).(Exchange); !ok {
		t.Error("Next is another without what is long ago")
	}
	g.policy.Refused = compaction.RequestTokens(g.history)
	if _, ok := Next(g.history, g.policy, time.Unix(1, 0)).(Compact); !ok {
		t.Error("no compaction without what is long ago")
	}
	g.add(canister.Document{Head: g.head(), Content: canister.Texts("more")})
	if told := growing.Of(g.history); len(told) != len(want)+1 {
		t.Errorf("told %d canisters, were %d", len(told), len(want))
	}
}

// FuzzView: whatever marks a history has, the view of it is sound if the history is.
func FuzzView(f *testing.F) {
	f.Add(uint64(1), "c3", 0, int64(7), uint8(5))
	f.Add(uint64(2), "c9", 100, int64(7), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, through string, trim int, tokens int64, at uint8) {
		g := &grower{t: t, random: rand.New(rand.NewPCG(seed, 1))}
		growing := compaction.View{}
		for range 3 {
			g.turn(func() {
				if g.n%3 == int(at)%3 {
					metadata := compaction.MarkedBy(compaction.Mark{Through: through, Trim: trim, Tokens: tokens}, nil)
					g.add(canister.Document{Head: canister.Head{ID: g.head().ID, Extra: canister.Extra{Metadata: metadata}}})
				}
				told := growing.Of(g.history)
				if problems := sequence.Check(told); problems != nil {
					t.Fatal(problems[0])
				}
				if fresh := (&compaction.View{}).Of(g.history); !reflect.DeepEqual(fresh, told) {
					t.Fatal("told at once it is another")
				}
				if compaction.RequestTokens(g.history) < 0 {
					t.Fatal("less than nothing")
				}
			})
		}
	})
}
