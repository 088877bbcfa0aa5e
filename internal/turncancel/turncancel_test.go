// SPDX-License-Identifier: Apache-2.0

package turncancel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/turncancel"
)

// TestOutlive: the context ends Limit after the other one, or when it is cancelled.
func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), time.Hour)
		defer leave()
		for _, took := range []time.Duration{time.Hour + turncancel.Limit, turncancel.Limit} {
			begun := time.Now()
			lasting, cancel := turncancel.Outlive(ctx)
			<-lasting.Done()
			if got := time.Since(begun); got != took {
				t.Errorf("it ended after %v, want %v", got, took)
			}
			cancel()
		}
		lasting, cancel := turncancel.Outlive(t.Context())
		if cancel(); lasting.Err() == nil {
			t.Error("the context has not ended")
		}
	})
}
