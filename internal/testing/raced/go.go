// SPDX-License-Identifier: Apache-2.0

package raced

import (
	"os"
	"slices"
	"strings"
)

// Unraced returns the environment of a go command that builds without the race detector,
// even if $GOFLAGS asks for it. The detector needs cgo; whether other programs have it is left
// to the settings of go env.
func Unraced() []string {
	flags := strings.Fields(os.Getenv("GOFLAGS"))
	if len(flags) == 0 { // an empty $GOFLAGS would hide the setting of go env
		return os.Environ()
	}
	flags = slices.DeleteFunc(flags, func(flag string) bool { return flag == "-race" || strings.HasSuffix(flag, "-race=false") })
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") })
	return append(env, "GOFLAGS="+strings.Join(flags, " "))
}
