// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"
)

// recentCalls is the number of calls that the latencies cover.
const recentCalls = 256

// Latency summarizes the durations of the newest calls, at most 256, whether or not
// they succeeded; zero without calls. Time spent waiting for the user does not count.
// In JSON, the durations are numbers of milliseconds.
type Latency struct {
	Last time.Duration // the newest call
	P50  time.Duration // median
	P99  time.Duration // 99th percentile
}

// latencyMS is the JSON form of [Latency].
type latencyMS struct {
	Last float64 `json:"last"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// MarshalJSON implements [json.Marshaler].
func (l Latency) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return json.Marshal(latencyMS{ms(l.Last), ms(l.P50), ms(l.P99)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Latency) UnmarshalJSON(text []byte) error {
	var form latencyMS
	err := json.Unmarshal(text, &form)
	duration := func(ms float64) time.Duration { return time.Duration(math.Round(ms * float64(time.Millisecond))) }
	*l = Latency{duration(form.Last), duration(form.P50), duration(form.P99)}
	return err
}

// stats are the counters of an ensemble. All methods may be called concurrently.
type stats struct {
	mu sync.Mutex
	counts
	requests int // for resources and prompts, in progress

	unused chan struct{} // closed when there is neither a call nor a request; nil unless a retired ensemble waits for it

	used time.Time       // when a call last began or ended, or a connection was made
	took []time.Duration // of the newest calls
}

// counts are the counters that a [Snapshot] reports.
type counts struct {
	inFlight, calls, failures, restarts, repeats, late int

	success time.Time // of the newest call or attempt to connect that succeeded
}

// now returns the counters.
func (t *stats) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// beginCall counts a call that begins.
func (t *stats) beginCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight++
	t.used = time.Now()
}

// repeatCall counts a call that is made again.
func (t *stats) repeatCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.repeats++
}

// endCall counts a call that is over.
func (t *stats) endCall(took time.Duration, succeeded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	t.noticeUnused()
}

// addRequests counts requests for a resource or prompt that begin, or end if n is
// negative; they count as a use but not as a call.
func (t *stats) addRequests(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests += n
	t.used = time.Now()
	t.noticeUnused()
}

// whenUnused returns a channel that is closed when there is neither a call nor a request.
func (t *stats) whenUnused() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unused = make(chan struct{})
	t.noticeUnused()
	return t.unused
}

// noticeUnused closes unused when it is time; t.mu is held.
func (t *stats) noticeUnused() {
	if t.unused != nil && t.inFlight == 0 && t.requests == 0 && !isClosed(t.unused) {
		close(t.unused)
	}
}

// addLate counts answers that arrived when no caller was waiting.
func (t *stats) addLate(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late += n
}

// connected counts a connection, which may replace a lost one.
func (t *stats) connected(restarted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if restarted {
		t.restarts++
	}
	t.success, t.used = time.Now(), time.Now()
}

// idle returns since when there is neither a call nor a request; false if there is one.
func (t *stats) idle() (since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used, t.inFlight == 0 && t.requests == 0
}

// latency summarizes the durations of the newest calls.
func (t *stats) latency() Latency {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.took) == 0 {
		return Latency{}
	}
	last := t.took[(t.calls-1)%recentCalls]
	sorted := slices.Sorted(slices.Values(t.took))
	// The nearest rank: the smallest that p percent of them do not exceed.
	rank := func(p int) time.Duration { return sorted[(len(sorted)*p+99)/100-1] }
	return Latency{Last: last, P50: rank(50), P99: rank(99)}
}
