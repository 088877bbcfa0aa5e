// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// traced returns ctx with the telemetry of the ensemble, if it has none.
func (e *Ensemble) traced(ctx context.Context) context.Context {
	if telemetry.From(ctx) != nil {
		return ctx
	}
	return telemetry.With(ctx, e.options.Telemetry)
}

// observe registers the ensemble with the gauges until it is closed.
func (e *Ensemble) observe() {
	stop, err := e.options.Telemetry.Observe(e.observed)
	if err != nil {
		e.log.Warn("the ensemble could not be added to the metrics", logevent.MetricsFailed, zap.Error(err))
		return
	}
	e.unobserve = stop
}

// states lists the values of [State].
var states = []string{string(Idle), string(Queued), string(Connecting), string(Ready), string(Lost), string(Parked), string(NeedsLogin), string(Closed)}

// observed returns the values of the gauges.
func (e *Ensemble) observed() telemetry.EnsembleState {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.stats.now()
	return telemetry.EnsembleState{
		Name:     e.name,
		State:    string(e.supervisor.state),
		States:   states,
		InFlight: n.inFlight,
		Restarts: n.restarts,
		Tools:    len(e.tools.offer.tools),
		Aside:    len(e.tools.offer.aside),
	}
}
