// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"testing"

	"github.com/consort-go/consort/internal/testing/parallelism"
)

func TestMain(m *testing.M) {
	parallelism.Set("8")
	os.Exit(m.Run())
}
