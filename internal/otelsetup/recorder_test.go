// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestRecorderIsBounded(t *testing.T) {
	r := &Recorder{}
	span := tracetest.SpanStub{Name: "x"}.Snapshot()
	for range maxSpans + 5 {
		r.OnEnd(span)
	}
	if spans, more := r.Take(); len(spans) != maxSpans || more != 5 {
		t.Errorf("%d spans are kept, and %d are not", len(spans), more)
	}
	if spans, more := r.Take(); len(spans) != 0 || more != 0 {
		t.Errorf("%d spans, and %d more, are still there", len(spans), more)
	}
}
