// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// maxAskedWait is the longest wait that a server may ask for. If it asks for more, the
// failure is final.
const maxAskedWait = 2 * time.Minute

// askedWait returns the wait that a server asks for, in OpenAI's own header or in the
// header of RFC 9110, section 10.2.3, in seconds or as a date.
func askedWait(header http.Header, now time.Time) (time.Duration, bool) {
	for _, form := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		value := header.Get(form.header)
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 {
			return time.Duration(min(n*float64(form.unit), float64(2*maxAskedWait))), true
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(0, min(at.Sub(now), 2*maxAskedWait)), true
		}
	}
	return 0, false
}

// backoff returns the wait after that many failed attempts: half a second, doubling up to 8
// seconds, and randomly up to a quarter shorter.
func backoff(failed int) time.Duration {
	wait := min(500*time.Millisecond<<max(0, min(failed-1, 10)), 8*time.Second)
	return wait - rand.N(wait/4)
}

// watch cancels an exchange that waits too long for the server. The timer runs only while
// the exchange waits, so a slow consumer does not matter.
type watch struct {
	end   context.CancelCauseFunc
	timer *time.Timer
	limit atomic.Int64 // duration of timer
}

// within cancels the exchange after limit unless stop is called first. A limit that is
// not positive means no limit.
func (w *watch) within(limit time.Duration) {
	w.stop()
	switch {
	case limit <= 0:
	case w.timer != nil:
		w.limit.Store(int64(limit))
		w.timer.Reset(limit)
	default:
		w.limit.Store(int64(limit))
		w.timer = time.AfterFunc(limit, func() { w.end(&silence{time.Duration(w.limit.Load())}) })
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
