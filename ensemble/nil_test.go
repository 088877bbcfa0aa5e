// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"fmt"
	"testing"

	"github.com/consort-go/consort/ensemble"
)

func TestNilsSayWhatIsMissing(t *testing.T) {
	e := ensemble.New("e", nil, nil)
	defer e.Close(t.Context())
	if err := e.Connect(t.Context()); err == nil || err.Error() != `ensemble "e": cannot connect: it has no source: New was called with nil` {
		t.Errorf("%v", err)
	}
	func() {
		defer func() {
			if got := fmt.Sprint(recover()); got != "ensemble: HealthHandler needs a roster, and was given nil" {
				t.Errorf("it panics with %s", got)
			}
		}()
		ensemble.HealthHandler(nil)
	}()
}
