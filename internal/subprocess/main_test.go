// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the parallel tests wait more than they work
	os.Exit(m.Run())
}
