// SPDX-License-Identifier: Apache-2.0

// Package soak contains only tests. They run everything together for a time, against
// servers that are killed, frozen and restarted, and then count: every invocation has its
// result, no effect happened twice, each result reports its effect correctly, and nothing
// is left over. docs/soak.md has the figures.
//
// The flag -soak or the variable CONSORT_SOAK sets how long TestSoak runs; the default is
// three seconds. The test prints its seed, and -soak.seed repeats the same decisions,
// although the timing of the machine is never the same. A long run needs a matching
// timeout:
//
//	go test -race ./internal/checks/soak -run TestSoak -v -soak 10m -timeout 15m
//
// The tests read /proc, and so run only on Linux.
package soak
