// SPDX-License-Identifier: Apache-2.0

package retryafter_test

import (
	"testing"
	"time"

	"github.com/consort-go/consort/internal/retryafter"
)

func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"", 0, false},
		{"soon", 0, false},
		{"-1", 0, false},
		{"NaN", 0, false},
		{"0", 0, true},
		{"7", 7 * time.Second, true},
		{"0.5", 500 * time.Millisecond, true},
		{"99999999999999999999", time.Hour, true},
		{"Inf", time.Hour, true},
		{"Sun, 22 Nov 2026 10:00:09 GMT", 9 * time.Second, true},
		{"Sun, 22 Nov 2026 09:00:00 GMT", 0, true},
		{"Sun, 22 Nov 2099 09:00:00 GMT", time.Hour, true},
	} {
		if wait, ok := retryafter.Parse(test.value, now, time.Hour); wait != test.want || ok != test.ok {
			t.Errorf("Parse(%q) = %v, %v; want %v, %v", test.value, wait, ok, test.want, test.ok)
		}
	}
}
