// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// SpanTree renders a tree for each trace, the oldest first.
func SpanTree(spans []sdk.ReadOnlySpan, more int, paint Palette) string {
	traces := map[trace.TraceID][]sdk.ReadOnlySpan{}
	for _, span := range spans {
		id := span.SpanContext().TraceID()
		traces[id] = append(traces[id], span)
	}
	var trees []*tree
	for id, spans := range traces {
		trees = append(trees, newTree(id, spans))
	}
	slices.SortFunc(trees, func(a, b *tree) int { return a.began.Compare(b.began) })
	var b strings.Builder
	for _, t := range trees {
		b.WriteString("\n" + paint.Bold("trace "+t.id.String()) + "\n")
		b.WriteString(t.text(paint))
	}
	switch {
	case more > 0:
		fmt.Fprintf(&b, "… and %d more spans\n", more)
	case len(trees) == 0:
		b.WriteString("\nno spans; OTEL_TRACES_SAMPLER may exclude this one\n")
	}
	return b.String()
}

// tree holds the spans of a trace by their parent span.
type tree struct {
	id       trace.TraceID
	began    time.Time
	children map[trace.SpanID][]sdk.ReadOnlySpan // the roots under the zero id
	rows     [][]string
	failed   []bool // by row
}

func newTree(id trace.TraceID, spans []sdk.ReadOnlySpan) *tree {
	t := &tree{id: id, began: spans[0].StartTime(), children: map[trace.SpanID][]sdk.ReadOnlySpan{}}
	here := map[trace.SpanID]bool{}
	for _, span := range spans {
		here[span.SpanContext().SpanID()] = true
	}
	slices.SortStableFunc(spans, func(a, b sdk.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, span := range spans {
		if span.StartTime().Before(t.began) {
			t.began = span.StartTime()
		}
		parent := span.Parent().SpanID()
		if !here[parent] { // the parent is in another process, or has not ended
			parent = trace.SpanID{}
		}
		t.children[parent] = append(t.children[parent], span)
	}
	for _, root := range t.children[trace.SpanID{}] {
		t.add(root, "  ", "  ")
	}
	return t
}

// add adds a row for a span, and rows for its children.
func (t *tree) add(span sdk.ReadOnlySpan, first, rest string) {
	t.rows = append(t.rows, []string{first + Fit(display.Line(span.Name()), 80), tookText(span.EndTime().Sub(span.StartTime())), details(span)})
	t.failed = append(t.failed, span.Status().Code == codes.Error)
	below := t.children[span.SpanContext().SpanID()]
	for i, child := range below {
		if i < len(below)-1 {
			t.add(child, rest+"├ ", rest+"│ ")
		} else {
			t.add(child, rest+"└ ", rest+"  ")
		}
	}
}

func (t *tree) text(paint Palette) string {
	widest := 0
	for _, row := range t.rows {
		widest = max(widest, Width(row[1]))
	}
	for _, row := range t.rows {
		row[1] = strings.Repeat(" ", widest-Width(row[1])) + row[1]
	}
	return Table(t.rows, func(row, column int, cell string) string {
		switch {
		case column == 0 && t.failed[row]:
			return paint.Bad(cell)
		case column == 0:
			return paint.Name(cell)
		case column == 2 && t.failed[row]:
			return paint.Bad(strings.TrimRight(cell, " "))
		case column == 2:
			return paint.Faint(strings.TrimRight(cell, " "))
		}
		return cell
	})
}

// tookText formats a duration with three significant digits, or with all digits before
// the decimal point.
func tookText(d time.Duration) string {
	unit, value := "ms", float64(d)/float64(time.Millisecond)
	if value >= 999.5 {
		unit, value = "s", d.Seconds()
	}
	switch {
	case value < 9.995:
		return fmt.Sprintf("%.2f %s", value, unit)
	case value < 99.95:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// details lists the attributes of a span that matter to people.
func details(span sdk.ReadOnlySpan) string {
	all := attribute.NewSet(span.Attributes()...)
	text := func(key attribute.Key) string {
		value, ok := all.Value(key)
		if !ok {
			return ""
		}
		if list := value.AsStringSlice(); list != nil {
			return display.Line(strings.Join(list, " "))
		}
		return display.Line(value.String())
	}
	count := func(key attribute.Key, one string) string {
		switch n := text(key); n {
		case "", "0":
			return ""
		case "1":
			return n + " " + one
		default:
			return n + " " + one + "s"
		}
	}
	parts := []string{
		fault(text("error.type"), span.Status().Description),
		text("consort.turn.reason"), count("consort.turn.exchanges", "exchange"), count("consort.turn.invocations", "invocation"),
		suffixed(text("gen_ai.usage.input_tokens"), " tokens in"), suffixed(text("gen_ai.usage.output_tokens"), " out"),
		firstPiece(all),
		count("consort.tools.count", "tool"), suffixed(strings.TrimPrefix(text("consort.tools.aside"), "0"), " set aside"),
		text("consort.ensemble"),
		where(text("server.address"), text("server.port"), text("network.transport")),
	}
	if text("consort.turn.reason") == "" {
		parts = append(parts[:1], append([]string{text("gen_ai.response.finish_reasons")}, parts[1:]...)...)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, ", ")
}

// fault describes the error of a span.
func fault(kind, description string) string {
	description = Fit(display.Line(description), 120)
	switch {
	case kind == "" || description == "" || strings.HasPrefix(description, kind):
		return cmp.Or(description, kind)
	}
	return kind + ": " + description
}

func suffixed(text, suffix string) string {
	if text == "" {
		return ""
	}
	return text + suffix
}

// firstPiece returns the time to the first piece of an answer.
func firstPiece(all attribute.Set) string {
	value, ok := all.Value("gen_ai.response.time_to_first_chunk")
	if !ok {
		return ""
	}
	return "first after " + tookText(time.Duration(value.AsFloat64()*float64(time.Second)))
}

func where(address, port, transport string) string {
	switch {
	case address == "" && transport == "pipe":
		return "stdio"
	case address == "" || port == "":
		return address
	}
	return net.JoinHostPort(address, port)
}
