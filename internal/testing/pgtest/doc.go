// SPDX-License-Identifier: Apache-2.0

// Package pgtest provides a real PostgreSQL server for tests. A test that needs a
// database calls [DSN]:
//
//	store, err := postgres.Open(ctx, pgtest.DSN(t), nil)
//
// The server runs the installed programs, from PATH or from Debian's directory. It works
// in its own temporary directory, and listens on 127.0.0.1 and on a socket in that
// directory. All tests of a process share one server; each test has its own database. The
// server ends with the process, even if the process panics or is killed, and its files
// are removed. PostgreSQL refuses to run as root; under root it runs as the user
// postgres, or nobody.
//
// A test that stops or kills its server gets its own one from [Start].
//
// The databases of tests are in memory if package ramdisk finds room, and the databases of
// benchmarks on the disk.
//
// If PostgreSQL is not installed, the test is skipped with a hint on how to install it, or
// fails, as package installed says. CONSORT_POSTGRES is the DSN of a server to use instead
// of the shared one; its role must be allowed to create databases.
package pgtest
