// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// EnsembleState is the state of an ensemble for the gauges.
type EnsembleState struct {
	Name     string
	State    string // the current state, one of States
	States   []string
	InFlight int // calls in progress
	Restarts int // reconnections since the ensemble started
	Tools    int // available tools
	Aside    int // tools set aside
}

// gauges are read when metrics are collected. They are up-down counters, so that
// the values of ensembles with the same name, such as those of a roster for each
// user, are added up.
type gauges struct {
	state    metric.Int64ObservableUpDownCounter
	inFlight metric.Int64ObservableUpDownCounter
	restarts metric.Int64ObservableCounter
	tools    metric.Int64ObservableUpDownCounter
	aside    metric.Int64ObservableUpDownCounter
}

var keyState = attribute.Key("consort.ensemble.state")

func newGauges(meter metric.Meter) (made gauges, err error) {
	var problems [5]error
	gauge := func(problem *error, name, unit, description string) (g metric.Int64ObservableUpDownCounter) {
		g, *problem = meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		return g
	}
	made.state = gauge(&problems[0], "consort.ensemble.states", "{ensemble}", "Ensembles with this name in this state.")
	made.inFlight = gauge(&problems[1], "consort.ensemble.calls", "{call}", "Calls in progress.")
	made.tools = gauge(&problems[2], "consort.ensemble.tools", "{tool}", "Tools offered to models.")
	made.aside = gauge(&problems[3], "consort.ensemble.tools.aside", "{tool}", "Tools set aside.")
	made.restarts, problems[4] = meter.Int64ObservableCounter("consort.ensemble.restarts",
		metric.WithUnit("{restart}"), metric.WithDescription("Reconnections."))
	return made, errors.Join(problems[:]...)
}

// Observe adds an ensemble to the gauges until stop is called. read is called
// when metrics are collected, and must return immediately.
func (t *Telemetry) Observe(read func() EnsembleState) (stop func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	g := t.gauges
	registration, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := read()
		of := keyEnsemble.String(s.Name)
		with := metric.WithAttributes(of)
		o.ObserveInt64(g.inFlight, int64(s.InFlight), with)
		o.ObserveInt64(g.tools, int64(s.Tools), with)
		o.ObserveInt64(g.aside, int64(s.Aside), with)
		o.ObserveInt64(g.restarts, int64(s.Restarts), with)
		for _, state := range s.States {
			var is int64
			if state == s.State {
				is = 1
			}
			o.ObserveInt64(g.state, is, metric.WithAttributes(of, keyState.String(state)))
		}
		return nil
	}, g.state, g.inFlight, g.tools, g.aside, g.restarts)
	if err != nil {
		return nil, err
	}
	return func() {
		t.guard("the end of a registration", func() { _ = registration.Unregister() }) // fails if it was called already
	}, nil
}
