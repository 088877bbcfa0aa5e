// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// This file predicts what the SDK does after a failed attempt, so that the event about it
// can be sent before the wait. Random values cannot be predicted: they are chosen here
// and put into the response, where the SDK reads them as the server's answer.

// maxAskedWait is the longest wait that the SDK accepts from a server. If the server asks
// for more, the failure is final.
const maxAskedWait = 2 * time.Minute

// sdkWait reports whether the SDK will retry, and how long it waits first. res is nil if
// there was no response; the SDK's wait is then up to a quarter shorter.
func (x *Exchange) sdkWait(res *http.Response) (time.Duration, bool) {
	last := x.attempts > x.server.MaxRetries
	if res == nil {
		return longestBackoff(x.attempts), !last
	}
	res.Header.Set("X-Should-Retry", strconv.FormatBool(x.failed.Retryable))
	if last || !x.failed.Retryable {
		return 0, false
	}
	wait, asked := askedWait(res.Header, time.Now())
	if !asked {
		wait = backoff(x.attempts)
	}
	if wait > maxAskedWait { // not every SDK has a limit of its own
		res.Header.Set("X-Should-Retry", "false")
		return 0, false
	}
	res.Header.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	return wait, true
}

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

// backoff returns the SDK's wait after that many failed attempts.
func backoff(failed int) time.Duration {
	wait := longestBackoff(failed)
	return wait - rand.N(wait/4)
}

// longestBackoff returns the wait before it is randomly shortened.
func longestBackoff(failed int) time.Duration {
	return min(500*time.Millisecond<<max(0, min(failed-1, 10)), 8*time.Second)
}

// watch cancels an exchange that waits too long for the server. The timer runs only while
// the exchange waits, so a slow consumer does not matter.
type watch struct {
	end   context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration // duration of timer
}

// within cancels the exchange after limit unless stop is called first. A limit that is
// not positive means no limit.
func (w *watch) within(limit time.Duration) {
	w.stop()
	switch {
	case limit <= 0:
	case w.timer != nil && w.limit == limit:
		w.timer.Reset(limit)
	default:
		w.limit = limit
		w.timer = time.AfterFunc(limit, func() { w.end(&silence{limit}) })
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
