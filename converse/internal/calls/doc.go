// SPDX-License-Identifier: Apache-2.0

// Package calls reads the state of open invocations from a history: attempts, doubt,
// waits and answers, and the exchanges that tools asked for. Everything here is computed
// from canisters alone: the package knows no conversation and no log.
package calls
