// SPDX-License-Identifier: Apache-2.0

// Package retryafter reads the header Retry-After.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Parse returns the wait that a header asks for, in seconds or as a date (RFC 9110, § 10.2.3),
// at most most. It returns false for a value of another form, and for none. Some servers send
// fractions of seconds.
func Parse(value string, now time.Time, most time.Duration) (time.Duration, bool) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds*float64(time.Second), float64(most))), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), most)), true
	}
	return 0, false
}
