// SPDX-License-Identifier: Apache-2.0

package raced

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
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

// Home returns a home directory with the settings that [Unraced] gives the go command, in its
// file. A server that consort starts sees only HOME. The process that starts consort needs an
// empty GOENV, too.
func Home(tb testing.TB) string {
	tb.Helper()
	home := tb.TempDir()
	get := exec.CommandContext(tb.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH", "CGO_ENABLED", "GOFLAGS")
	get.Env = Unraced()
	values, err := get.Output()
	if err != nil {
		tb.Fatal(err)
	}
	set := exec.CommandContext(tb.Context(), "go", "env", "-w")
	for i, value := range strings.Split(strings.TrimSuffix(string(values), "\n"), "\n") {
		set.Args = append(set.Args, get.Args[2+i]+"="+value)
	}
	set.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if out, err := set.CombinedOutput(); err != nil {
		tb.Fatalf("%q: %v\n%s", set.Args, err, out)
	}
	return home
}
