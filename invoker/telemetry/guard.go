// SPDX-License-Identifier: Apache-2.0

package telemetry

import "fmt"

// guard runs what may be the program's own code, such as a processor of spans or
// a propagator. A panic there costs a span, and not the work that is looked at.
func (t *Telemetry) guard(what string, run func()) {
	defer func() {
		if p := recover(); p != nil && t.options.Panicked != nil {
			t.options.Panicked(fmt.Errorf("telemetry: %s panicked: %v", what, p))
		}
	}()
	run()
}
