// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
)

func idOf(id string) canister.Head { return canister.Head{ID: id} }

// A digest names what each line is, and has no more bytes than it may have.
func TestDigest(t *testing.T) {
	summary := canister.Document{Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: markedBy(mark{Through: "x"}, nil)}}, Title: "Summary", Content: canister.Texts("They met.")}
	told := []canister.Canister{
		summary,
		canister.User{Head: idOf("u"), Content: canister.Texts(strings.Repeat("x", 1000))},
		canister.Assistant{Head: idOf("a")},
		canister.Invocation{Head: idOf("i"), Message: "a", Name: "look", Arguments: "{}"},
		canister.Result{Head: idOf("r"), Invocation: "i", Content: canister.Texts(strings.Repeat("y", 5000))},
	}
	whole := digest(told, 2048, 1<<20)
	for _, want := range []string{`{"from":"summary","text":"They met."}`, `{"from":"tool","tool":"look","text":"yyy`, "[2952 bytes left out]"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%s is missing in %s", want, whole)
		}
	}
	if digest(told, 2048, len(whole)) != whole {
		t.Error("what fits is cut")
	}
	for _, most := range []int{len(whole) - 1, 2000, 1000, 700} {
		if out := digest(told, 2048, most); len(out) > most || !strings.Contains(out, "They met.") {
			t.Errorf("%d bytes, and may have %d", len(out), most)
		}
	}
}

func TestSaid(t *testing.T) {
	object := canister.StructuredContent{JSON: []byte(`{"a":1}`)}
	for _, test := range []struct {
		contents []canister.Content
		want     string
	}{
		{[]canister.Content{object}, `{"a":1}`},
		{[]canister.Content{canister.Text(`{"a":1}`), object}, `{"a":1}`},
		{[]canister.Content{canister.Text("one"), object}, "one\n" + `{"a":1}`},
		{[]canister.Content{canister.ResourceContent{URI: "u", Text: "it"}}, "[the resource u]\nit"},
		{[]canister.Content{canister.ResourceContent{URI: "u", Blob: []byte{1}, Text: "it"}}, "[the resource u]"},
		{canister.Texts("1234567890"), "1234567890"},
		{canister.Texts("1234567äö"), "1234567ä [2 bytes left out]"},
		{canister.Texts("123456789ä"), "123456789 [2 bytes left out]"},
	} {
		if got := said(test.contents, 10+100*(len(test.contents)-1)+20*strings.Count(test.want, "[the")); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestDigestTokens(t *testing.T) {
	long := canister.Result{Content: canister.Texts(strings.Repeat("x", 9000))}
	if got, want := digestTokens(long, 3000), int64(1000+16); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if got, want := digestTokens(canister.User{Content: long.Content}, 3000), int64(3000+8+16); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if got := (&Compaction{Trim: -1}).digestTrim(); got != defaultCompactTrim {
		t.Errorf("without cuts it is told %d bytes of a result", got)
	}
}

// talked is a history of exchanges, each with a message of so many bytes.
func talked(bytes ...int) (history []canister.Canister) {
	for i, n := range bytes {
		history = append(history,
			canister.User{Head: idOf(fmt.Sprint("u", i)), Content: canister.Texts(strings.Repeat("x", n))},
			canister.Assistant{Head: idOf(fmt.Sprint("m", i))})
	}
	return history
}

// looked adds a call with a result of so many bytes to the last message.
func looked(history []canister.Canister, bytes int) []canister.Canister {
	message := history[len(history)-1].Header().ID
	return append(history,
		canister.Invocation{Head: idOf("i"), Message: message, CallID: "c", Name: "look", Arguments: "{}"},
		canister.Result{Head: idOf("r"), Invocation: "i", Content: canister.Texts(strings.Repeat("y", bytes))})
}

func toAsk(history []canister.Canister) []canister.Canister {
	return append(history, canister.User{Head: idOf("u"), Content: canister.Texts("more")})
}

// What the plan of a compaction is, at its bounds.
func TestPlans(t *testing.T) {
	exact := toAsk(talked(6000, 600))
	size := load(exact)
	final := Limits{Exchanges: 1, FinalAnswer: true}
	for _, test := range []struct {
		name    string
		history []canister.Canister
		options Compaction
		limits  Limits
		through string // empty if nothing is compacted
		trim    int
	}{
		{"at the share", exact, Compaction{Window: 2 * size, At: 0.5, Keep: 1}, Limits{}, "m0", 0},
		{"below the share", exact, Compaction{Window: 2*size + 2, At: 0.5, Keep: 1}, Limits{}, "", 0},
		{"little, and there is room", toAsk(talked(2650, 24000)), Compaction{Window: 9100, Keep: 1}, Limits{}, "", 0},
		{"little, and there is none", toAsk(talked(2650, 24000)), Compaction{Window: 8900, Keep: 1}, Limits{}, "m0", 0},
		{"nothing, in the smallest window", toAsk(talked(0)), Compaction{Window: 1}, Limits{}, "", 0},
		{"a new result, and there is room", looked(talked(0), 24000), Compaction{Window: 9000}, Limits{}, "", 0},
		{"a new result, and there is none", looked(talked(0), 24000), Compaction{Window: 8000}, Limits{}, "r", 2048},
		{"a new result, and something old", looked(talked(10000, 0), 24000), Compaction{Window: 8000, Keep: 1}, Limits{}, "m0", 0},
		{"before the last answer, the model is not asked", looked(talked(24000, 0), 3000), Compaction{Window: 9500, Keep: 1}, final, "", 0},
		{"before another answer it is", looked(talked(24000, 0), 3000), Compaction{Window: 9500, Keep: 1}, Limits{}, "u0", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			command, ok := Next(test.history, Policy{Limits: test.limits, Compaction: &test.options}, time.Time{}).(Compact)
			if ok != (test.through != "") || command.Through != test.through || command.Trim != test.trim {
				t.Errorf("of %d tokens: %v through %q, cut to %d", load(test.history), ok, command.Through, command.Trim)
			}
		})
	}
}

// What a summary frees is what it takes the place of: not the instructions, and not
// the message that the work is about.
func TestWhatASummaryFrees(t *testing.T) {
	instructed := append([]canister.Canister{canister.Supervisor{Head: idOf("s"), Content: canister.Texts(strings.Repeat("x", 21000))}}, talked(3000, 0)...)
	working := append(looked(talked(24000), 3000), canister.Assistant{Head: idOf("m9")})
	again := append(working[:len(working):len(working)],
		canister.Invocation{Head: idOf("i2"), Message: "m9", CallID: "c", Name: "look", Arguments: "{}"},
		canister.Result{Head: idOf("r2"), Invocation: "i2", Content: canister.Texts("seen")})
	later := append(working[:len(working):len(working)],
		canister.Document{Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: markedBy(mark{Through: "r", Tokens: 8100}, nil)}}, Content: canister.Texts("short")})
	for _, test := range []struct {
		name     string
		history  []canister.Canister
		options  Compaction
		from, to int64
	}{
		{"everything", toAsk(talked(24000, 0)), Compaction{Window: 8000, Keep: 1, MaxTokens: 10}, 7950, 8050},
		{"instructions stay", toAsk(instructed), Compaction{Window: 8000, Keep: 1}, 450, 550},
		{"the user's message stays", again, Compaction{Window: 9000, Keep: 1}, 450, 550},
		{"the next one takes its place", toAsk(append(later, canister.Assistant{Head: idOf("m10")})), Compaction{Window: 8000, Keep: 1, MaxTokens: 10}, 7950, 8050},
	} {
		t.Run(test.name, func(t *testing.T) {
			command, ok := Next(test.history, Policy{Compaction: &test.options}, time.Time{}).(Compact)
			if gain := command.Before - command.After; !ok || gain < test.from || gain > test.to {
				t.Errorf("%v: %d of %d tokens through %q, want %d to %d", ok, gain, command.Before, command.Through, test.from, test.to)
			}
		})
	}
}

// What a call has spent of the model counts also if it waits, and of the turn alone.
func TestLimitsCountWaits(t *testing.T) {
	history := looked(talked(1), 1)
	result := history[len(history)-1]
	wait := canister.Wait{Head: canister.Head{ID: "w", Extra: canister.Extra{Metadata: sampled{Exchanges: 5}.remember(nil)}}, For: canister.WaitElicitation, Invocation: "i"}
	history = append(history[:len(history)-1], wait, result)
	policy := Policy{Limits: Limits{Exchanges: 6}}
	if command := Next(history, policy, time.Time{}); command != (Done{Reason: ReasonExchanges}) {
		t.Errorf("next is %+v", command)
	}
	policy.Limits.Exchanges = 7
	if command := Next(history, policy, time.Time{}); command != (Exchange{}) {
		t.Errorf("next is %+v", command)
	}
}
