// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"
)

// recentCalls is how many calls the latencies are of.
const recentCalls = 256

// Latency is how long the newest calls took, 256 at most, whatever came of
// them; zero when there was none. Time in which a person was asked does not
// count.
type Latency struct {
	Last time.Duration // the newest call
	P50  time.Duration // half of them took no longer
	P99  time.Duration // 99 of 100 took no longer
}

// tally counts what an ensemble did; Ensemble.mu guards it.
type tally struct {
	inFlight, calls, failures, restarts, repeats, late int

	requests int // for resources and prompts, under way

	success time.Time // of the newest call or attempt to connect that succeeded
	used    time.Time // when a call last began or ended, or a connection was made
	took    []time.Duration
}

// beginCall counts a call that begins.
func (e *Ensemble) beginCall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.inFlight++
	e.tally.used = time.Now()
}

// beginRequest notes a request for a resource or prompt, which is a use but no
// call.
func (e *Ensemble) beginRequest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.requests++
	e.tally.used = time.Now()
}

func (e *Ensemble) endRequest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.requests--
	e.tally.used = time.Now()
}

// inUse reports whether a call or request is under way; Ensemble.mu is held.
func (t *tally) inUse() bool { return t.inFlight > 0 || t.requests > 0 }

// repeatCall counts a call that is made again.
func (e *Ensemble) repeatCall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.repeats++
}

// endCall counts a call that is over.
func (e *Ensemble) endCall(took time.Duration, succeeded bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.tally
	t.inFlight--
	t.used = time.Now()
	if len(t.took) < recentCalls {
		t.took = append(t.took, took)
	} else {
		t.took[t.calls%recentCalls] = took
	}
	t.calls++
	if succeeded {
		t.success = t.used
	} else {
		t.failures++
	}
}

// latency sums up how long the newest calls took; Ensemble.mu is held.
func (t *tally) latency() Latency {
	if len(t.took) == 0 {
		return Latency{}
	}
	last := t.took[(t.calls-1)%recentCalls]
	sorted := slices.Sorted(slices.Values(t.took))
	// The nearest rank: the smallest that p percent of them do not exceed.
	rank := func(p int) time.Duration { return sorted[(len(sorted)*p+99)/100-1] }
	return Latency{Last: last, P50: rank(50), P99: rank(99)}
}
