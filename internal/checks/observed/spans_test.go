// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// span is a recorded span of any process.
type span struct {
	Process           string // that it was made in
	Name, Kind        string
	Trace, ID, Parent string
	Links             []string // the traces
	Attributes        map[string]any
	Status            string
}

// recorder records the spans of one process, or of its substitute.
type recorder struct {
	process  string
	exporter *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	*telemetry.Telemetry
}

func newRecorder(process string, options telemetry.Options) (*recorder, error) {
	r := &recorder{process: process, exporter: tracetest.NewInMemoryExporter()}
	r.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.exporter))
	options.Tracers = r.provider
	var err error
	r.Telemetry, err = telemetry.New(&options)
	return r, err
}

func mustRecord(t *testing.T, process string, options telemetry.Options) *recorder {
	t.Helper()
	r, err := newRecorder(process, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spans returns the ended spans.
func (r *recorder) spans() (all []span) {
	for _, s := range r.exporter.GetSpans() {
		made := span{
			Process: r.process, Name: s.Name, Kind: s.SpanKind.String(),
			Trace: s.SpanContext.TraceID().String(), ID: s.SpanContext.SpanID().String(),
			Attributes: make(map[string]any), Status: s.Status.Code.String(),
		}
		if s.Parent.HasSpanID() {
			made.Parent = s.Parent.SpanID().String()
		}
		for _, link := range s.Links {
			made.Links = append(made.Links, link.SpanContext.TraceID().String())
		}
		for _, a := range s.Attributes {
			made.Attributes[string(a.Key)] = plainValue(a.Value)
		}
		all = append(all, made)
	}
	return all
}

// plainValue is a value as JSON has it, so that it is the same from a file.
func plainValue(v attribute.Value) any {
	switch v.Type() {
	case attribute.INT64:
		return float64(v.AsInt64())
	case attribute.STRINGSLICE:
		return strings.Join(v.AsStringSlice(), ",")
	}
	return v.AsInterface()
}

// write puts the spans into a file; read has them again.
func (r *recorder) write(path string) error {
	data, err := json.Marshal(r.spans())
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func read(t *testing.T, path string) (all []span) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// tree writes spans as an indented list: the caller of each, its process, and its
// failure. Siblings are sorted by name.
func tree(all []span) string {
	children := make(map[string][]span)
	known := make(map[string]bool)
	for _, s := range all {
		known[s.ID] = true
	}
	for _, s := range all {
		if s.Parent != "" && !known[s.Parent] {
			s.Parent, s.Name = "", s.Name+" whose parent is nowhere"
		}
		children[s.Parent] = append(children[s.Parent], s)
	}
	var out strings.Builder
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		slices.SortFunc(children[parent], func(a, b span) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Process, b.Process))
		})
		for _, s := range children[parent] {
			fmt.Fprintf(&out, "%s%s (%s, %s)", strings.Repeat("  ", depth), s.Name, s.Kind, s.Process)
			if s.Status != "Unset" || s.Attributes["error.type"] != nil {
				fmt.Fprintf(&out, " %s: %v", s.Status, s.Attributes["error.type"])
			}
			out.WriteString("\n")
			walk(s.ID, depth+1)
		}
	}
	walk("", 0)
	return out.String()
}

// ofTrace are the spans of one trace.
func ofTrace(all []span, id string) (some []span) {
	for _, s := range all {
		if s.Trace == id {
			some = append(some, s)
		}
	}
	return some
}
