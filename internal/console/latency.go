// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
)

// The latencies that a console keeps: half an hour of each ensemble.
const (
	sampleEvery = 15 * time.Second
	maxSamples  = 120
)

// sample is the latency of an ensemble at a moment: the percentiles of its newest calls.
type sample struct {
	p50, p99 time.Duration
	calls    int // since the sample before
}

// series are the samples of an ensemble, the oldest first.
type series struct {
	samples []sample
	calls   int // all, at the last sample
}

// latencies are the samples of ensembles. Its methods may be called concurrently.
type latencies struct {
	mu  sync.Mutex
	all map[string]*series
}

// sample adds a sample of each ensemble, and forgets the ensembles that are gone.
func (l *latencies) sample(health []ensemble.EnsembleHealth) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.all
	l.all = map[string]*series{}
	for i := range health {
		e := &health[i]
		s := before[e.Name]
		if s == nil || e.Calls < s.calls { // it is another ensemble of the same name
			s = &series{}
		}
		if len(s.samples) == maxSamples {
			s.samples = append(s.samples[:0], s.samples[1:]...)
		}
		s.samples = append(s.samples, sample{e.Latency.P50, e.Latency.P99, e.Calls - s.calls})
		s.calls = e.Calls
		l.all[e.Name] = s
	}
}

// of returns the samples of an ensemble.
func (l *latencies) of(name string) []sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.all[name]; s != nil {
		return append([]sample(nil), s.samples...)
	}
	return nil
}

// watch takes samples until done is closed.
func (l *latencies) watch(roster *ensemble.Roster, done <-chan struct{}) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		l.sample(roster.Health().Ensembles)
		select {
		case <-ticker.C:
		case <-done:
			return
		}
	}
}

// sparkline returns the percentiles of an ensemble as lines, and the calls between two samples
// as bars; nil without calls.
func sparkline(name string, samples []sample) part {
	const height = 32
	slowest, busiest := time.Duration(0), 0
	for _, s := range samples {
		slowest, busiest = max(slowest, s.p99), max(busiest, s.calls)
	}
	if slowest == 0 || len(samples) < 2 {
		return nil
	}
	line := func(of func(sample) time.Duration) string {
		var points []string
		for i, s := range samples {
			if at := of(s); at > 0 { // there was a call before
				points = append(points, fmt.Sprintf("%d,%d", maxSamples-len(samples)+i, height-1-int(at*(height-2)/slowest)))
			}
		}
		return strings.Join(points, " ")
	}
	var bars []part
	for i, s := range samples {
		if s.calls > 0 {
			tall := max(1, s.calls*height/2/busiest)
			bars = append(bars, svg("rect", class("calls"), attr("x", fmt.Sprint(maxSamples-len(samples)+i)), attr("y", fmt.Sprint(height-tall)),
				attr("width", "1"), attr("height", fmt.Sprint(tall))))
		}
	}
	span := short(time.Duration(len(samples)-1) * sampleEvery)
	label := fmt.Sprintf("Latency of %s in the last %s: p99 at most %s", name, span, short(slowest))
	return svg("svg", class("spark"), attr("viewBox", fmt.Sprintf("0 0 %d %d", maxSamples, height)), attr("preserveAspectRatio", "none"),
		attr("role", "img"), attr("aria-label", label), svg("title", text(label)), group(bars...),
		svg("polyline", class("p99"), attr("points", line(func(s sample) time.Duration { return s.p99 }))),
		svg("polyline", class("p50"), attr("points", line(func(s sample) time.Duration { return s.p50 }))))
}
