// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// This file foresees what the SDK does after a failed attempt, so that the
// event about it can come before the wait. What cannot be foreseen, as it is
// chosen by chance, is chosen here and put into the response, where the SDK
// finds it as the server's word.

// maxAskedWait is the longest wait that the SDK lets a server ask for; when it
// asks for more, the failure is final.
const maxAskedWait = 2 * time.Minute

// sdkWait says whether the SDK will try again, and how long it waits first.
// The response is nil when there was none; the SDK then waits up to a quarter
// less.
func (x *exchange) sdkWait(res *http.Response) (time.Duration, bool) {
	last := x.attempts > x.m.opts.MaxRetries
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
	res.Header.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	return wait, wait <= maxAskedWait
}

// askedWait returns the wait that a server asks for: in OpenAI's own header,
// or as of RFC 9110, section 10.2.3, in seconds or as a date.
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

// backoff is the SDK's wait after that many failed attempts.
func backoff(failed int) time.Duration {
	wait := longestBackoff(failed)
	return wait - rand.N(wait/4)
}

// longestBackoff is that wait before chance shortens it.
func longestBackoff(failed int) time.Duration {
	return min(500*time.Millisecond<<min(failed-1, 10), 8*time.Second)
}

// watch ends an exchange when it waits too long for the server. It looks only
// while something is awaited, so that a slow consumer costs nothing.
type watch struct {
	end   context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration // of timer
}

// within lets the exchange end unless stop is called in time. A limit that is
// not positive is none.
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
