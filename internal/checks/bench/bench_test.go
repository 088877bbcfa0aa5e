// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// newConsort is the runtime over the same servers as [newHand].
func newConsort(tb testing.TB, url string, stream bool) (*openaimodel.Model, *ensemble.Roster) {
	tb.Helper()
	model, err := openaimodel.New("scripted", &openaimodel.Options{BaseURL: url, APIKey: "none", NoStream: !stream})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { model.Close() })
	roster, err := ensemble.NewRoster(newTools("tools", 0))
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
	return model, roster
}

func newTools(name string, delay time.Duration) *ensemble.Ensemble {
	argv, environment := toolsCommand()
	environment[startDelay] = delay.String()
	source := mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{Environment: environment})
	return ensemble.New(name, source, &ensemble.Options{ConnectTimeout: 30 * time.Second})
}

// unlimited are limits for turns that are longer than any should be.
var unlimited = converse.Limits{Exchanges: -1}

// cost is what a process has used so far.
type cost struct {
	cpu     time.Duration
	mallocs uint64
	bytes   uint64
}

func used() cost {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return cost{
		cpu:     time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		mallocs: memory.Mallocs,
		bytes:   memory.TotalAlloc,
	}
}

// report states what each of n exchanges in each iteration cost.
func report(b *testing.B, before cost, n int) {
	after := used()
	each := float64(b.N * n)
	b.ReportMetric(float64(b.Elapsed())/each, "ns/exchange")
	b.ReportMetric(float64(after.cpu-before.cpu)/each, "cpu-ns/exchange")
	b.ReportMetric(float64(after.mallocs-before.mallocs)/each, "allocs/exchange")
	b.ReportMetric(float64(after.bytes-before.bytes)/each, "B/exchange")
}

// BenchmarkTurn is one turn of so many exchanges, each with one call.
func BenchmarkTurn(b *testing.B) {
	for _, exchanges := range []int{20, 200, 500} {
		url := launchModel(b, turnOf(exchanges, object{"name": prefix + "look", "arguments": object{"what": "the weather in Oslo"}}))
		for _, stream := range []bool{true, false} {
			name := fmt.Sprintf("whole/%d", exchanges)
			if stream {
				name = fmt.Sprintf("stream/%d", exchanges)
			}
			b.Run(name+"/hand", func(b *testing.B) {
				h := newHand(b, url, stream)
				runTurns(b, exchanges, func() error {
					_, err := h.turn(b.Context(), "Go.")
					return err
				})
			})
			b.Run(name+"/consort", func(b *testing.B) {
				model, roster := newConsort(b, url, stream)
				runTurns(b, exchanges, func() error {
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

func runTurns(b *testing.B, exchanges int, turn func() error) {
	b.Helper()
	if err := turn(); err != nil { // warms up
		b.Fatal(err)
	}
	runtime.GC()
	before := used()
	for b.Loop() {
		if err := turn(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, before, exchanges)
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

// BenchmarkDeltas is an answer of 2,000 deltas: the time to the first, and to
// the end.
func BenchmarkDeltas(b *testing.B) {
	text := make([]byte, 2000*8)
	for i := range text {
		text[i] = "abcdefg "[i%8]
	}
	url := launchModel(b, object{"steps": []object{{"message": object{"text": string(text), "delta": 8}}}})
	b.Run("hand", func(b *testing.B) {
		h := newHand(b, url, true)
		var first time.Duration
		before := used()
		for b.Loop() {
			began, seen := time.Now(), false
			h.onDelta = func(text string) {
				if !seen && text != "" {
					first += time.Since(began)
					seen = true
				}
			}
			if _, err := h.turn(b.Context(), "Go."); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(first)/float64(b.N), "ns/first-delta")
		report(b, before, 1)
	})
	b.Run("consort", func(b *testing.B) {
		model, roster := newConsort(b, url, true)
		var first time.Duration
		before := used()
		for b.Loop() {
			began, seen := time.Now(), false
			for event, err := range converse.New(model, roster, nil).Send(b.Context(), canister.Text("Go.")) {
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := event.(converse.TextDelta); ok && !seen {
					first += time.Since(began)
					seen = true
				}
			}
		}
		b.ReportMetric(float64(first)/float64(b.N), "ns/first-delta")
		report(b, before, 1)
	})
}

// BenchmarkConnect is how long stdio servers take to connect, one and ten, each
// of which needs 300 ms before it says anything.
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
