// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel"
)

// guard runs what may be the program's own code, such as a processor of spans or
// a propagator. A panic there is told to OpenTelemetry's error handler, and costs
// a span: not the work that is looked at.
func guard(what string, run func()) {
	defer func() {
		if p := recover(); p != nil {
			otel.Handle(fmt.Errorf("telemetry: %s panicked: %v", what, p))
		}
	}()
	run()
}
