// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // most wait for processes or for time more than they work
	os.Exit(m.Run())
}
