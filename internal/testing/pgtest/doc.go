// SPDX-License-Identifier: Apache-2.0

// Package pgtest gives tests a real PostgreSQL. A test that needs a database
// asks for one:
//
//	store, err := postgres.Open(ctx, pgtest.DSN(t), nil)
//
// The server comes from the programs that are installed, in PATH or where Debian
// puts them, works in a directory of its own, listens on 127.0.0.1 and on a
// socket in that directory, and is one for all tests of a process. Each test has
// a database of its own in it. The server ends with the process, also where that
// panics or is killed, and leaves nothing behind. PostgreSQL does not run for
// root; there it runs as the user postgres, or nobody.
//
// A test that stops or kills its server asks [Start] for one of its own.
//
// Where PostgreSQL is not installed, the test is skipped with a word on how to
// get it, or fails if CONSORT_REAL is "required", as in .ci/run. CONSORT_POSTGRES
// is the DSN of a server to use in place of the shared one; its role must be
// allowed to make databases.
package pgtest
