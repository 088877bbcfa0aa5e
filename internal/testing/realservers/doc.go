// SPDX-License-Identifier: Apache-2.0

// Package realservers runs the MCP servers and clients that tests use and
// nobody here wrote: the reference servers, the inspector and the TypeScript SDKs
// from npm, at the versions of .ci/npm/package-lock.json. A test begins with
//
//	servers := realservers.Need(t)
//
// and is skipped where they are not installed, with a word on how to get them.
// Where CONSORT_REAL is "required", as in .ci/run, it fails instead.
// CONSORT_NPM names another directory of installed packages than
// .ci/npm/node_modules.
//
// NeedPython does the same for Python with gRPC, which Debian has.
package realservers
