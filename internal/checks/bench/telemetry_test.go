// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// seenTurns is how many turns each side does in a round.
const seenTurns = 100

// BenchmarkTelemetry is a turn of two exchanges, streamed, the first of which
// asks for three calls over HTTP, with servers in processes of their own: as it
// is without a Telemetry, with one that has no provider, with the SDK's tracer
// and a batch processor whose exporter drops everything, and with the SDK's
// metrics beside. All take turns, on the same connections, so that whatever
// else the machine does meets them all; the ratios are medians over the rounds.
func BenchmarkTelemetry(b *testing.B) {
	talks := newSeenTurns(b)
	tracer := sdktrace.NewTracerProvider(sdktrace.WithBatcher(dropped{}))
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	b.Cleanup(func() {
		if err := tracer.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
	})
	sides := []*seenSide{
		{name: "without"},
		{name: "no-provider", seen: newTelemetry(b, telemetry.Options{})},
		{name: "tracing", seen: newTelemetry(b, telemetry.Options{Tracers: tracer})},
		{name: "tracing+metrics", seen: newTelemetry(b, telemetry.Options{Tracers: tracer, Meters: meter})},
	}
	for _, side := range sides { // warms up
		talks.round(b, side)
		side.rounds = nil
	}
	for n := 0; b.Loop(); n++ {
		for i := range sides {
			talks.round(b, sides[(n+i)%len(sides)])
		}
	}
	for _, side := range sides {
		b.ReportMetric(float64(median(side.rounds))/seenTurns/1e3, side.name+"-cpu-us/turn")
		b.ReportMetric(float64(side.mallocs)/float64(seenTurns*(b.N+1)), side.name+"-allocs/turn")
	}
	for _, side := range sides[1:] {
		var ratios []float64
		for i, cpu := range side.rounds {
			ratios = append(ratios, float64(cpu)/float64(sides[0].rounds[i]))
		}
		b.ReportMetric(median(ratios), side.name+"-cpu-ratio")
	}
}

// seenSide is a loop with one kind of Telemetry, and its cost.
type seenSide struct {
	name    string
	seen    *telemetry.Telemetry
	rounds  []time.Duration // CPU
	mallocs uint64
}

// seenTurnsOf is shared by the sides.
type seenTurnsOf struct {
	model  *openaimodel.Model
	roster *ensemble.Roster
}

func newSeenTurns(b *testing.B) *seenTurnsOf {
	b.Helper()
	echo := object{"name": prefix + echoName, "arguments": object{"text": strings.Repeat("Oslo ", 40)}}
	url := launchModel(b, object{"steps": []object{
		{"message": object{"text": "I look it up in three places.", "calls": []object{echo, echo, echo}}},
		{"message": object{"text": strings.Repeat("It will rain. ", 40), "delta": 8}},
	}})
	model, err := openaimodel.New("scripted", &openaimodel.Options{BaseURL: url, APIKey: "none"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { model.Close() })
	tools := ensemble.New("tools", mcpadapter.HTTP(launchHTTP(b, "sdk").url+"/mcp", nil), nil)
	roster, err := ensemble.NewRoster(tools)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return &seenTurnsOf{model, roster}
}

func newTelemetry(b *testing.B, opts telemetry.Options) *telemetry.Telemetry {
	b.Helper()
	seen, err := telemetry.New(&opts)
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// round is some turns, each of a conversation of its own.
func (s *seenTurnsOf) round(b *testing.B, side *seenSide) {
	b.Helper()
	runtime.GC() // none pays for another
	before := used()
	for range seenTurns {
		talk := converse.New(s.model, s.roster, &converse.Options{Telemetry: side.seen})
		turn, err := talk.Ask(b.Context(), canister.Text("What will the weather be?"))
		if err == nil && (turn.Exchanges != 2 || turn.Invocations != 3) {
			err = fmt.Errorf("the turn was %+v", turn)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	after := used()
	side.rounds = append(side.rounds, after.cpu-before.cpu)
	side.mallocs += after.mallocs - before.mallocs
}

// dropped is an exporter that drops everything.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }

// median returns the middle of some numbers, which is not zero.
func median[N float64 | time.Duration](numbers []N) N {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}
