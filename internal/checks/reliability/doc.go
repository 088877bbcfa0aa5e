// SPDX-License-Identifier: Apache-2.0

// Package reliability contains only a test, the matrix of docs/reliability.md. It runs a
// whole conversation over every fault of package faultserver, at each possible moment and
// over each transport, and compares the outcome with the promised one.
package reliability
