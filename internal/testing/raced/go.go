// SPDX-License-Identifier: Apache-2.0

package raced

import (
	"os"
	"slices"
	"strings"
)

// Unraced returns the environment of a go command that builds without the race detector,
// even if $GOFLAGS asks for it. Then it also builds without cgo, because only the detector
// needs cgo, and .ci/run has compiled all packages without both.
func Unraced() []string {
	env, flags := os.Environ(), os.Getenv("GOFLAGS")
	if !slices.Contains(strings.Fields(flags), "-race") { // an empty one would hide the setting of go env
		return env
	}
	return append(env, "GOFLAGS="+flags+" -race=false", "CGO_ENABLED=0")
}
