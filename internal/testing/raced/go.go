// SPDX-License-Identifier: Apache-2.0

package raced

import (
	"os"
	"slices"
	"strings"
)

// Unraced returns the environment of a go command that builds without the race detector,
// even if $GOFLAGS asks for it.
func Unraced() []string {
	env, flags := os.Environ(), strings.Fields(os.Getenv("GOFLAGS"))
	if len(flags) == 0 { // an empty $GOFLAGS would hide the setting of go env
		return env
	}
	flags = slices.DeleteFunc(flags, func(flag string) bool { return flag == "-race" || strings.HasSuffix(flag, "-race=false") })
	return append(env, "GOFLAGS="+strings.Join(flags, " "))
}
