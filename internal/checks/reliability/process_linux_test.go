// SPDX-License-Identifier: Apache-2.0

package reliability_test

import (
	"bytes"
	"fmt"
	"os"
)

// alive reports whether a process runs. A zombie, as in a container without an init, does
// not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat, []byte(") ")) // the name may hold anything but this
	return !bytes.HasPrefix(after, []byte("Z")) && !bytes.HasPrefix(after, []byte("X"))
}
