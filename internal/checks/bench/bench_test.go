// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// newFunction returns one tool, which is a Go function.
func newFunction(tb testing.TB) *ensemble.Ensemble {
	tb.Helper()
	look, err := invoker.New("look", "Look something up.", func(context.Context, lookInput) (string, error) { return lookText, nil }, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return ensemble.Local("tools", look)
}

// newRoster connects the tools of the benchmarks.
func newRoster(tb testing.TB, tools ...*ensemble.Ensemble) *ensemble.Roster {
	tb.Helper()
	roster, err := ensemble.NewRoster(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	if err := roster.Connect(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return roster
}

// newConsort is the runtime with Chat Completions over the same servers as [newChatHand].
func newConsort(tb testing.TB, url string, stream bool) (converse.Model, *ensemble.Roster) {
	tb.Helper()
	return newOpenAI(tb, url, "chat", stream), newRoster(tb, newTools("tools", 0))
}

func newOpenAI(tb testing.TB, url, api string, stream bool) converse.Model {
	tb.Helper()
	model, err := openaimodel.New("scripted", &openaimodel.Options{BaseURL: url, APIKey: "none", API: api, NoStream: !stream})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { model.Close() })
	return model
}

func newAnthropic(tb testing.TB, url string, stream bool) converse.Model {
	tb.Helper()
	model, err := anthropicmodel.New("scripted", &anthropicmodel.Options{BaseURL: strings.TrimSuffix(url, "/v1"), APIKey: "none", NoStream: !stream})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { model.Close() })
	return model
}

// apis are the APIs of models, with both sides of the comparison.
var apis = []struct {
	name  string
	hand  func(url string, tools *handTools, stream bool) hand
	model func(tb testing.TB, url string, stream bool) converse.Model
}{
	{"chat", newChatHand, func(tb testing.TB, url string, stream bool) converse.Model { return newOpenAI(tb, url, "chat", stream) }},
	{"responses", newResponsesHand, func(tb testing.TB, url string, stream bool) converse.Model {
		return newOpenAI(tb, url, "responses", stream)
	}},
	{"messages", newMessagesHand, newAnthropic},
}

func newTools(name string, delay time.Duration) *ensemble.Ensemble {
	argv, environment := toolsCommand()
	environment[startDelay] = delay.String()
	environment[toolCount] = os.Getenv(toolCount)
	source := mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{Environment: environment})
	return ensemble.New(name, source, &ensemble.Options{ConnectTimeout: 30 * time.Second})
}

// unlimited are limits for turns that are longer than any should be.
var unlimited = converse.Limits{Exchanges: -1}

// cost is the resource use of a process so far.
type cost struct {
	time    time.Duration
	cpu     time.Duration
	mallocs uint64
	bytes   uint64
}

var began = time.Now()

func used() cost {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return cost{
		time:    time.Since(began),
		cpu:     time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		mallocs: memory.Mallocs,
		bytes:   memory.TotalAlloc,
	}
}

// BenchmarkTurn is one turn of so many exchanges, each with one call of a Go function.
func BenchmarkTurn(b *testing.B) {
	benchmarkTurns(b, newHandFunction(), newRoster(b, newFunction(b)))
}

// BenchmarkMCPTurn is the same with a tool of an MCP server over stdio.
func BenchmarkMCPTurn(b *testing.B) {
	benchmarkTurns(b, newHandTools(b), newRoster(b, newTools("tools", 0)))
}

func benchmarkTurns(b *testing.B, tools *handTools, roster *ensemble.Roster) {
	b.Helper()
	sizes := []int{20, 200, 500}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, exchanges := range sizes {
		url := launchModel(b, turnOf(exchanges, object{"name": prefix + "look", "arguments": object{"what": "the weather in Oslo"}}))
		for _, api := range apis {
			for _, stream := range []bool{true, false} {
				b.Run(fmt.Sprintf("%s/%s/%d", api.name, map[bool]string{true: "stream", false: "whole"}[stream], exchanges), func(b *testing.B) {
					loop, model := api.hand(url, tools, stream), api.model(b, url, stream)
					compare(b, exchanges, func() error {
						_, err := loop.turn(b.Context(), "Go.", func(string) {})
						return err
					}, func() error {
						talk := converse.New(model, roster, &converse.Options{Limits: unlimited})
						turn, err := talk.Ask(b.Context(), canister.Text("Go."))
						if err == nil && turn.Exchanges != exchanges {
							err = fmt.Errorf("there were %d exchanges", turn.Exchanges)
						}
						return err
					})
				})
			}
		}
	}
}

// BenchmarkDeltas is an answer of 2,000 deltas.
func BenchmarkDeltas(b *testing.B) {
	tools, roster := newHandFunction(), newRoster(b, newFunction(b))
	url := launchModel(b, object{"steps": []object{{"message": object{"text": strings.Repeat("abcdefg ", 2000), "delta": 8}}}})
	for _, api := range apis {
		b.Run(api.name, func(b *testing.B) {
			loop, model := api.hand(url, tools, true), api.model(b, url, true)
			compare(b, 1, func() error {
				deltas := 0
				_, err := loop.turn(b.Context(), "Go.", func(string) { deltas++ })
				return want(err, deltas)
			}, func() error {
				deltas := 0
				for event, err := range converse.New(model, roster, nil).Send(b.Context(), canister.Text("Go.")) {
					if err != nil {
						return err
					}
					if _, ok := event.(converse.TextDelta); ok {
						deltas++
					}
				}
				return want(nil, deltas)
			})
		})
	}
}

func want(err error, deltas int) error {
	if err == nil && deltas < 2000 {
		err = fmt.Errorf("there were %d deltas", deltas)
	}
	return err
}

// perRound is how many exchanges each side makes in a round, at least, so that a round is
// longer than the clock of the CPU is coarse.
const perRound = 400

// compare measures a loop that was written by hand and the runtime. Both take turns, and
// begin in turn, so that the other work of the machine meets both. The ratios are medians
// over the rounds.
func compare(b *testing.B, exchanges int, hand, consort func() error) {
	b.Helper()
	sides := []*side{{name: "hand", turn: hand}, {name: "consort", turn: consort}}
	for _, s := range sides { // warms up
		if err := s.turn(); err != nil {
			b.Fatal(s.name, err)
		}
	}
	turns := max(1, perRound/max(exchanges, 20))
	for n := 0; b.Loop(); n++ {
		for i := range sides {
			s := sides[(n+i)%2]
			if err := s.round(turns); err != nil {
				b.Fatal(s.name, err)
			}
		}
	}
	for _, s := range sides {
		s.report(b, exchanges*turns)
	}
	ratio := func(unit string, of func(cost) float64) {
		var ratios []float64
		for i, c := range sides[1].rounds {
			ratios = append(ratios, of(c)/of(sides[0].rounds[i]))
		}
		b.ReportMetric(median(ratios), unit)
	}
	ratio("time-ratio", func(c cost) float64 { return float64(c.time) })
	ratio("cpu-ratio", func(c cost) float64 { return float64(c.cpu) })
	ratio("allocs-ratio", func(c cost) float64 { return float64(c.mallocs) })
	ratio("bytes-ratio", func(c cost) float64 { return float64(c.bytes) })
}

// side is one side of a comparison, and what it has cost in each round.
type side struct {
	name   string
	turn   func() error
	rounds []cost
}

func (s *side) round(turns int) error {
	runtime.GC() // neither pays for the other
	before := used()
	for range turns {
		if err := s.turn(); err != nil {
			return err
		}
	}
	after := used()
	s.rounds = append(s.rounds, cost{after.time - before.time, after.cpu - before.cpu, after.mallocs - before.mallocs, after.bytes - before.bytes})
	return nil
}

// report states what an exchange cost, as the median of the rounds.
func (s *side) report(b *testing.B, exchanges int) {
	of := func(unit string, of func(cost) float64) {
		var each []float64
		for _, c := range s.rounds {
			each = append(each, of(c)/float64(exchanges))
		}
		b.ReportMetric(median(each), s.name+"-"+unit+"/exchange")
	}
	of("cpu-us", func(c cost) float64 { return float64(c.cpu) / 1e3 })
	of("allocs", func(c cost) float64 { return float64(c.mallocs) })
	of("B", func(c cost) float64 { return float64(c.bytes) })
}

// BenchmarkGrowth is the time of the last exchanges of a long turn, for the
// claim that an exchange costs no more than its request grows.
func BenchmarkGrowth(b *testing.B) {
	const most = 500
	url := launchModel(b, turnOf(most, object{"name": prefix + "look"}))
	model, roster := newConsort(b, url, true)
	durations := make([]time.Duration, most)
	for b.Loop() {
		talk := converse.New(model, roster, &converse.Options{Limits: unlimited})
		n, began := 0, time.Now()
		for event, err := range talk.Send(b.Context(), canister.Text("Go.")) {
			if err != nil {
				b.Fatal(err)
			}
			switch event.(type) {
			case converse.MessageStarted:
				began = time.Now()
			case converse.ExchangeCompleted:
				durations[n] += time.Since(began)
				n++
			}
		}
	}
	for _, at := range []int{20, 100, 200, 500} {
		var sum time.Duration
		for _, d := range durations[at-20 : at] {
			sum += d
		}
		b.ReportMetric(float64(sum)/float64(20*b.N), fmt.Sprintf("ns-at-%d", at))
	}
}

// BenchmarkParallelCalls is a turn with eight calls of 50 ms in one message.
func BenchmarkParallelCalls(b *testing.B) {
	var calls []object
	for range 8 {
		calls = append(calls, object{"name": prefix + "wait", "arguments": object{"milliseconds": 50}})
	}
	url := launchModel(b, turnOf(2, calls...))
	model, roster := newConsort(b, url, true)
	for b.Loop() {
		if _, err := converse.New(model, roster, nil).Ask(b.Context(), canister.Text("Go.")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/turn")
}

// BenchmarkConnect measures how long stdio servers take to connect, one and ten, each with
// a start-up time of 300 ms.
func BenchmarkConnect(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var ensembles []*ensemble.Ensemble
				for i := range n {
					ensembles = append(ensembles, newTools(fmt.Sprintf("tools%d", i), 300*time.Millisecond))
				}
				roster, err := ensemble.NewRoster(ensembles...)
				if err != nil {
					b.Fatal(err)
				}
				if err := roster.Connect(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := roster.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkManyConversations is 2,000 conversations side by side on one roster,
// each of one turn with two calls, and the memory that they hold at their peak.
func BenchmarkManyConversations(b *testing.B) {
	const many = 2000
	look := object{"name": prefix + "look", "arguments": object{"what": "x"}}
	url := launchModel(b, turnOf(2, look, look))
	model, roster := newConsort(b, url, true)
	var peak uint64
	for b.Loop() {
		runtime.GC()
		base := heap()
		done := make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					if now := heap(); now > base {
						peak = max(peak, now-base)
					}
				}
			}
		})
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				talk := converse.New(model, roster, nil)
				if turn, err := talk.Ask(b.Context(), canister.Text("Go.")); err != nil || turn.Invocations != 2 {
					b.Errorf("turn = %+v, err = %v", turn, err)
				}
			})
		}
		all.Wait()
		close(done)
		watch.Wait()
	}
	b.ReportMetric(float64(peak)/many, "peak-B/conversation")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*many), "ns/conversation")
}

func heap() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapInuse + memory.StackInuse
}
