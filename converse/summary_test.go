// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/compaction"
)

func idOf(id string) canister.Head { return canister.Head{ID: id} }

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
	size := compaction.RequestTokens(exact)
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
				t.Errorf("of %d tokens: %v through %q, cut to %d", compaction.RequestTokens(test.history), ok, command.Through, command.Trim)
			}
		})
	}
}

// A PDF file that the model has not seen is not cut because of its bytes.
func TestPDFIsNotCut(t *testing.T) {
	history := looked(talked(0), 1)
	result := history[len(history)-1].(canister.Result)
	page := "<< /Type /Page >>"
	result.Content = []canister.Content{canister.ResourceContent{
		URI: "file:///a.pdf", MIME: "application/pdf", Blob: []byte("%PDF-1.4" + page + strings.Repeat("\x80", 700_000) + page),
	}}
	history[len(history)-1] = result
	if command, ok := Next(history, Policy{Compaction: &Compaction{Window: 200_000}}, time.Time{}).(Exchange); !ok {
		t.Errorf("the next command is %+v", command)
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
		canister.Document{
			Head: canister.Head{
				ID: "d", Extra: canister.Extra{Metadata: compaction.MarkedBy(compaction.Mark{Through: "r", Tokens: 8100}, nil)},
			}, Content: canister.Texts("short"),
		})
	for _, test := range []struct {
		name     string
		history  []canister.Canister
		options  Compaction
		from, to int64
	}{
		{"everything", toAsk(talked(24000, 0)), Compaction{Window: 8000, Keep: 1, MaxTokens: 10}, 7950, 8050},
		{"instructions stay", toAsk(instructed), Compaction{Window: 8000, Keep: 1}, 450, 550},
		{"the user's message stays", again, Compaction{Window: 9000, Keep: 1}, 450, 550},
		{
			"the next one takes its place", toAsk(append(later, canister.Assistant{Head: idOf("m10")})),
			Compaction{Window: 8000, Keep: 1, MaxTokens: 10}, 7950, 8050,
		},
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
	wait := canister.Wait{
		Head: canister.Head{ID: "w", Extra: canister.Extra{Metadata: calls.Sampled{Exchanges: 5}.Remember(nil)}},
		For:  canister.WaitElicitation, Invocation: "i",
	}
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

// The time of a turn is counted from the end of the one before if the message is older. A time that
// is not reached yet is of a machine whose clock is ahead, and does not count.
func TestTimeOfATurn(t *testing.T) {
	sent := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		before, after time.Duration // from the message to the canister before it, and to now
		want          Command
	}{
		{-time.Minute, 4 * time.Minute, Exchange{}},
		{-time.Minute, 5 * time.Minute, Done{Reason: ReasonTime}},
		{2 * time.Minute, 6 * time.Minute, Exchange{}},
		{2 * time.Minute, 7 * time.Minute, Done{Reason: ReasonTime}},
		{time.Hour, 4 * time.Minute, Exchange{}},
		{time.Hour, 6 * time.Minute, Exchange{}}, // the message has waited, or nothing was done yet
	} {
		history := toAsk(talked(1))
		answer, message := history[1].(canister.Assistant), history[2].(canister.User)
		answer.Time, message.Time = sent.Add(test.before), sent
		history[1], history[2] = answer, message
		if command := Next(history, Policy{Limits: Limits{Time: 5 * time.Minute}}, sent.Add(test.after)); command != test.want {
			t.Errorf("%v after the message, and with an answer at %v: %+v, want %+v", test.after, test.before, command, test.want)
		}
	}
	history := toAsk(talked(1))
	answer, message := history[1].(canister.Assistant), history[2].(canister.User)
	answer.Time, message.Time = sent.Add(time.Hour), sent
	first := canister.Assistant{Head: canister.Head{Time: sent.Add(time.Minute)}}
	if took := calls.InTurn([]canister.Canister{answer, message, first}, 1, sent.Add(7*time.Minute)); took != 6*time.Minute {
		t.Errorf("a turn that began 6 minutes ago after an answer of another clock has taken %v", took)
	}
}
