// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// EnsembleState is what the gauges tell of an ensemble.
type EnsembleState struct {
	Name     string
	State    string // the one of States that it is in
	States   []string
	InFlight int // calls under way
	Restarts int // connections made anew, since the ensemble began
	Tools    int // on offer
	Aside    int // tools set aside
}

// gauges are read whenever somebody collects the metrics. They are counters that
// go up and down, because the numbers of ensembles of one name, such as those of
// a roster for each user, then add up.
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
	made.state = gauge(&problems[0], "consort.ensemble.states", "{ensemble}", "Ensembles of the name that are in the state.")
	made.inFlight = gauge(&problems[1], "consort.ensemble.calls", "{call}", "Calls under way.")
	made.tools = gauge(&problems[2], "consort.ensemble.tools", "{tool}", "Tools on offer.")
	made.aside = gauge(&problems[3], "consort.ensemble.tools.aside", "{tool}", "Tools that were set aside.")
	made.restarts, problems[4] = meter.Int64ObservableCounter("consort.ensemble.restarts",
		metric.WithUnit("{restart}"), metric.WithDescription("Connections that were made anew."))
	return made, errors.Join(problems[:]...)
}

// Observe lets the gauges tell of an ensemble until stop is called: read is
// asked whenever metrics are collected, and must return at once.
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
		t.guard("the end of a registration", func() { _ = registration.Unregister() }) // it fails when it was called already
	}, nil
}
