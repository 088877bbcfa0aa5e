// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/retryafter"
)

// maxAskedWait is the longest wait that a server may ask for. If it asks for more, the
// failure is final.
const maxAskedWait = 2 * time.Minute

// waitWords matches the waits in the messages of OpenAI, Groq, Google and Azure, such as "Please try
// again in 1m12.5s" and "Please retry after 26 seconds".
var waitWords = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) (?:about )?((?:[\d.]+ ?(?:h|ms|m|s))+)(?:ec|econds?)?\b`)

// askedWait returns the wait that a server asks for, in OpenAI's own header, in the
// header of RFC 9110, section 10.2.3, in seconds or as a date, or in the message of an error.
func askedWait(header http.Header, message string, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return time.Duration(min(ms*float64(time.Millisecond), float64(2*maxAskedWait))), true
	}
	if wait, ok := retryafter.Parse(header.Get("Retry-After"), now, 2*maxAskedWait); ok {
		return wait, true
	}
	if match := waitWords.FindStringSubmatch(message); match != nil {
		wait, err := time.ParseDuration(strings.ReplaceAll(strings.ToLower(match[1]), " ", ""))
		return wait, err == nil
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
	cause atomic.Pointer[silence]
}

// within cancels the exchange after limit unless stop is called first. A limit that is
// not positive means no limit.
func (w *watch) within(limit time.Duration) {
	if known := w.cause.Load(); known != nil && *known == (silence{limit: limit}) {
		w.until(limit, known)
		return
	}
	w.until(limit, &silence{limit: limit})
}

// until is like within, with the cause of the cancellation.
func (w *watch) until(limit time.Duration, cause *silence) {
	w.stop()
	if limit <= 0 {
		return
	}
	w.cause.Store(cause)
	if w.timer != nil {
		w.timer.Reset(limit)
		return
	}
	w.timer = time.AfterFunc(limit, func() { w.end(w.cause.Load()) })
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
