// SPDX-License-Identifier: Apache-2.0

package faultserver_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

// TestMemoryIsBounded: large things are never in the memory of the server.
func TestMemoryIsBounded(t *testing.T) {
	const size, bound = 300 << 20, 100 << 20
	for _, rule := range []Rule{
		{Fault: "huge-result", At: "after-effect", Size: size},
		{Fault: "endless-line", At: "before-effect", Size: size},
		{Fault: "flood-stderr", At: "before-effect", Size: size},
		{Fault: "half-then-silence", At: "after-effect"},
	} {
		t.Run(string(rule.Fault), func(t *testing.T) {
			rules := []Rule{rule}
			if rule.Fault == "half-then-silence" { // of a large answer
				rules = []Rule{{Fault: "huge-result", At: "after-effect", Size: size}, rule}
			}
			c := startStdio(t, Script{Rules: rules})
			hello(t, c)
			c.send(callEffect)
			g := c.seen()
			eventually(t, "all of it", func() bool {
				stderr := c.stderr.Size()
				return g.look(func() bool {
					return g.bytes+stderr >= size || rule.Fault == "half-then-silence" && g.partial > 1000
				})
			})
			if got := peak(t, c.cmd.Process.Pid); got > bound {
				t.Errorf("the server took %d MiB", got>>20)
			}
		})
	}
}

// peak is the most memory that a process has held.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
