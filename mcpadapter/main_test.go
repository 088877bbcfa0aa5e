// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"os"
	"testing"

	"github.com/consort-go/consort/internal/testing/parallelism"
)

func TestMain(m *testing.M) {
	parallelism.Set("12")
	os.Exit(m.Run())
}
