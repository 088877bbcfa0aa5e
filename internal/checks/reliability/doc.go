// SPDX-License-Identifier: Apache-2.0

// Package reliability holds no code of its own: its test is the matrix of
// docs/reliability.md, which runs a whole conversation over every fault of
// package faultserver, at each moment at which it can strike, over each
// transport, and compares what came of it with what is promised.
package reliability
