// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// The variables that make TestWork measure one side of one row of the table.
const (
	workRow  = "CONSORT_BENCH_ROW"
	workSide = "CONSORT_BENCH_SIDE"
	workURL  = "CONSORT_BENCH_MODEL"
	// workRepeats is optional: a profile needs more turns than a measurement.
	workRepeats = "CONSORT_BENCH_REPEATS"
)

// sidesOf are the sides of the table; the ratios are to hand.
var sidesOf = []string{"floor", "hand", "consort"}

// work is what one process measures: the same work for each side.
type work struct {
	name    string
	script  object // of the model
	stream  bool
	tools   int // how many the server has
	servers int
	do      func(tb testing.TB, w *working) figures
}

// figures are measurements by unit.
type figures map[string]float64

// working is the side that a process measures.
type working struct {
	hand
	began time.Time // when it began to connect its servers
}

func scriptOf(exchanges, calls int) object {
	list := make([]object, calls)
	for i := range list {
		list[i] = object{"name": prefix + "look", "arguments": object{"what": "the weather in Oslo"}}
	}
	return turnOf(exchanges, list...)
}

var works = []work{
	{name: "whole", script: scriptOf(20, 1), do: turns(20, 20)},
	{name: "streamed", script: scriptOf(20, 1), stream: true, do: turns(20, 20)},
	{name: "tools", script: scriptOf(20, 1), stream: true, tools: 100, do: turns(20, 10)},
	{name: "parallel-whole", script: scriptOf(5, 8), do: turns(5, 20)},
	{name: "parallel-streamed", script: scriptOf(5, 8), stream: true, do: turns(5, 20)},
	{name: "long", script: scriptOf(500, 1), stream: true, do: lateExchanges},
	{name: "many", script: scriptOf(2, 2), stream: true, do: atOnce(2000)},
	{name: "most", script: scriptOf(2, 2), stream: true, do: atOnce(10000)},
	{name: "first", script: object{"steps": []object{{"message": object{"text": strings.Repeat("abcdefg ", 40), "delta": 8}}}}, stream: true, do: firstDelta},
	{name: "start", script: scriptOf(1, 0), stream: true, servers: 10, do: firstAnswer},
	{name: "chunk", script: object{"steps": []object{{"message": object{"text": strings.Repeat("abcdefg ", 2000), "delta": 8}}}}, stream: true, do: turns(2000, 10)},
}

// TestWork measures one side of a row, in the process that TestTable has started for it, and
// prints its figures as JSON.
func TestWork(t *testing.T) {
	name := os.Getenv(workRow)
	if name == "" {
		t.Skip("TestTable starts it")
	}
	for _, w := range works {
		if w.name == name {
			side := &working{began: time.Now()}
			side.hand = w.side(t, os.Getenv(workSide), os.Getenv(workURL))
			text, err := json.Marshal(w.do(t, side))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("%s%s\n", figuresPrefix, text)
		}
	}
}

const figuresPrefix = "figures: "

// side connects a side to its servers and to the model at url.
func (w *work) side(tb testing.TB, side, url string) hand {
	tb.Setenv(toolCount, strconv.Itoa(w.tools))
	servers := max(w.servers, 1)
	if side == "consort" {
		list := make([]*ensemble.Ensemble, servers)
		for i := range list {
			list[i] = newTools(strings.TrimSuffix(prefix, "__")+strings.Repeat("x", i), 0)
		}
		return &consortLoop{newOpenAI(tb, url, "chat", w.stream), newRoster(tb, list...)}
	}
	list := make([]*handTools, servers)
	_ = allOf(servers, func(i int) error { list[i] = newHandTools(tb); return nil })
	if side == "floor" {
		return newFloor(tb, url, list[0], w.stream)
	}
	return newChatHand(url, list[0], w.stream)
}

// consortLoop is the runtime as a loop.
type consortLoop struct {
	model  converse.Model
	roster *ensemble.Roster
}

func (l *consortLoop) turn(ctx context.Context, prompt string, onDelta func(string)) (string, error) {
	for event, err := range converse.New(l.model, l.roster, &converse.Options{Limits: unlimited}).Send(ctx, canister.Text(prompt)) {
		if err != nil {
			return "", err
		}
		switch event := event.(type) {
		case converse.TextDelta:
			onDelta(event.Text)
		case converse.TurnCompleted:
			return event.Turn.Text(), nil
		}
	}
	return "", ctx.Err()
}

// allOf does so many things side by side; a single one on the caller's goroutine.
func allOf(n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failed[i] = do(i) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// repeats is how many times the usual number of turns a process measures.
func repeats() int {
	n, _ := strconv.Atoi(os.Getenv(workRepeats))
	return max(n, 1)
}

// turns does so many turns, after two that warm up, and returns what one of the parts of a
// turn costs.
func turns(parts, times int) func(testing.TB, *working) figures {
	return func(tb testing.TB, w *working) figures {
		times := times * repeats()
		var before cost
		for n := range times + 2 {
			if n == 2 {
				before = used()
			}
			if text, err := w.turn(tb.Context(), "Go.", func(string) {}); err != nil || text == "" {
				tb.Fatalf("%q, %v", text, err)
			}
		}
		after, each := used(), float64(parts*times)
		return figures{
			"cpu": float64((after.cpu - before.cpu).Microseconds()) / each, "time": float64((after.time - before.time).Microseconds()) / each,
			"allocs": float64(after.mallocs-before.mallocs) / each, "bytes": float64(after.bytes-before.bytes) / each,
		}
	}
}

// lateExchanges is what an exchange near the 490th of a turn costs.
func lateExchanges(tb testing.TB, w *working) figures {
	const first, last = 480, 499
	n, before, after := 0, cost{}, cost{}
	_, err := w.turn(tb.Context(), "Go.", func(text string) {
		if !strings.HasPrefix(text, "I") { // of each message
			return
		}
		switch n++; n {
		case first:
			before = used()
		case last:
			after = used()
		}
	})
	if err != nil || n < last {
		tb.Fatalf("%v after %d messages", err, n)
	}
	return figures{
		"time": float64((after.time - before.time).Microseconds()) / (last - first), "cpu": float64((after.cpu - before.cpu).Microseconds()) / (last - first),
		"allocs": float64(after.mallocs-before.mallocs) / (last - first), "bytes": float64(after.bytes-before.bytes) / (last - first),
	}
}

// atOnce runs conversations side by side and returns what each costs: its CPU, and its part of
// the largest memory of the process.
func atOnce(many int) func(testing.TB, *working) figures {
	return func(tb testing.TB, w *working) figures {
		before, failures := used(), 0
		err := allOf(many, func(int) error { _, err := w.turn(tb.Context(), "Go.", func(string) {}); return err })
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			failures = len(joined.Unwrap())
			tb.Log(joined.Unwrap()[0])
		}
		return figures{
			"cpu": float64((used().cpu - before.cpu).Microseconds()) / float64(many), "memory": float64(largestMemory(tb)) / float64(many), "errors": float64(failures),
		}
	}
}

// largestMemory returns the largest resident memory of this process so far, in bytes. It is not
// that of getrusage, which a process inherits from the one that started it.
func largestMemory(tb testing.TB) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("needs /proc: ", err)
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kilobytes << 10
}

// firstDelta is the median of the time to the first piece of text.
func firstDelta(tb testing.TB, w *working) figures {
	var times []time.Duration
	for range 100 * repeats() {
		began, took := time.Now(), time.Duration(0)
		if _, err := w.turn(tb.Context(), "Go.", func(string) { took = cmp.Or(took, time.Since(began)) }); err != nil {
			tb.Fatal(err)
		}
		times = append(times, took)
	}
	return figures{"time": float64(median(times).Nanoseconds()) / 1e3}
}

// firstAnswer is the time from the beginning of the connections to the first piece of text.
func firstAnswer(tb testing.TB, w *working) figures {
	var took time.Duration
	if _, err := w.turn(tb.Context(), "Go.", func(string) { took = cmp.Or(took, time.Since(w.began)) }); err != nil {
		tb.Fatal(err)
	}
	return figures{"time": float64(took.Microseconds())}
}
