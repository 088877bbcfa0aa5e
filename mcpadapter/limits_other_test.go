// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mcpadapter_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/consort-go/consort/mcpadapter"
)

// A limit that cannot be set is not passed over.
func TestLimitsElsewhere(t *testing.T) {
	limits := mcpadapter.ResourceLimits{OpenFiles: 64}
	connection, err := mcpadapter.Stdio([]string{os.Args[0]}, &mcpadapter.StdioOptions{Limits: limits}).Open(t.Context())
	if connection != nil || err == nil || !strings.Contains(err.Error(), "resource limits are not supported on "+runtime.GOOS) {
		t.Errorf("Open: %v, %v", connection, err)
	}
}
