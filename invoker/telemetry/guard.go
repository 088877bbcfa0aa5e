// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/consort-go/consort/internal/contain"
)

// guard runs code that may be the program's own, such as a span processor or a
// propagator. A panic in it costs a span, but does not affect the observed work.
func (t *Telemetry) guard(what string, run func()) {
	if err := contain.Call(what, run); err != nil {
		t.reportPanic(err)
	}
}

// reportPanic calls Options.Panicked, which is also the program's code.
func (t *Telemetry) reportPanic(err error) {
	if t.options.Panicked != nil {
		_ = contain.Call("Panicked", func() { t.options.Panicked(fmt.Errorf("telemetry: %w", err)) })
	}
}

// onSpan changes the span of an operation, which is implemented by the provider.
func (o *operation) onSpan(change func(span trace.Span)) {
	o.telemetry.guard("a span", func() { change(o.span) })
}

// measureSeconds records a duration if its instrument is enabled.
func (t *Telemetry) measureSeconds(ctx context.Context, instrument metric.Float64Histogram, seconds float64, option func() metric.MeasurementOption) {
	t.guard("an instrument", func() {
		if instrument.Enabled(ctx) {
			instrument.Record(ctx, seconds, option())
		}
	})
}
