// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/consort-go/consort/internal/contain"
)

// guard runs what may be the program's own code, such as a processor of spans or
// a propagator. A panic there costs a span, and not the work that is looked at.
func (t *Telemetry) guard(what string, run func()) {
	if err := contain.Call(what, run); err != nil {
		t.reportPanic(err)
	}
}

// reportPanic calls Options.Panicked, which is the program's own code too.
func (t *Telemetry) reportPanic(err error) {
	if t.options.Panicked != nil {
		_ = contain.Call("Panicked", func() { t.options.Panicked(fmt.Errorf("telemetry: %w", err)) })
	}
}

// onSpan changes the span of an operation, whose code is that of a provider.
func (o *operation) onSpan(change func(span trace.Span)) {
	o.telemetry.guard("a span", func() { change(o.span) })
}

// measureSeconds records a duration, if its instrument wants it.
func (t *Telemetry) measureSeconds(ctx context.Context, instrument metric.Float64Histogram, seconds float64, option func() metric.MeasurementOption) {
	t.guard("an instrument", func() {
		if instrument.Enabled(ctx) {
			instrument.Record(ctx, seconds, option())
		}
	})
}
