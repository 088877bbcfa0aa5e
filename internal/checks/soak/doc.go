// SPDX-License-Identifier: Apache-2.0

// Package soak has no code, only the tests that let everything run together
// for a time, against servers that are killed, frozen and restarted, and then
// count: every invocation has its result, no effect happened twice, what a
// result says of its effect is true, and nothing is left behind. docs/soak.md
// has the figures.
//
// How long TestSoak lasts is for the flag -soak to say, or the variable
// CONSORT_SOAK; five seconds otherwise. The test prints its seed, and
// -soak.seed takes it again: the same decisions, though the machine is never
// the same. A long one needs a time-out to match:
//
//	go test -race ./internal/checks/soak -run TestSoak -v -soak 10m -timeout 15m
//
// The tests read /proc, and so run on Linux alone.
package soak
