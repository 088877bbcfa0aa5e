// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // the tests of real servers wait for processes more than they work
	os.Exit(m.Run())
}
