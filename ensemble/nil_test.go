// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"testing"

	"github.com/consort-go/consort/ensemble"
)

func TestNilSourceSaysWhatIsMissing(t *testing.T) {
	e := ensemble.New("e", nil, nil)
	defer e.Close(t.Context())
	if err := e.Connect(t.Context()); err == nil || err.Error() != `ensemble "e": cannot connect: it has no source: New was called with nil` {
		t.Errorf("%v", err)
	}
}
