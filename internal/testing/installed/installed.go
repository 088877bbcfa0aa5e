// SPDX-License-Identifier: Apache-2.0

// Package installed decides what becomes of a test that needs a program that not every
// machine has: PostgreSQL, the MCP servers from npm, Python with gRPC, a browser,
// Temporal's servers. The packages that start these programs ask it.
//
// The environment variable CONSORT_REAL has three values. Empty, a test runs if its program
// is installed, and is skipped otherwise. With "required", as in .ci/run, it fails instead of
// being skipped. With "none", nothing counts as installed, whatever the machine has: this
// shows what the tests do on a machine that has only Go.
package installed

import (
	"os"
	"testing"
)

const variable = "CONSORT_REAL"

// Hidden reports whether the caller is to say that its program is not installed, without
// looking for it.
func Hidden() bool { return os.Getenv(variable) == "none" }

// Required reports whether a test fails whose program is missing.
func Required() bool { return os.Getenv(variable) == "required" }

// Missing ends a test whose program is missing: it is skipped, or fails if the program is
// required. The error says how to install the program. The test must be the one whose
// goroutine this is, not a parent of it.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if Required() {
		tb.Fatal(err)
	}
	tb.Skip(err)
}
