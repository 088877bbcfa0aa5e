// SPDX-License-Identifier: Apache-2.0

// Package realservers runs third-party MCP servers and clients for tests: the reference
// servers, the inspector and the TypeScript SDKs from npm, at the versions of
// .ci/npm/package-lock.json. A test begins with
//
//	servers := realservers.Need(t)
//
// and is skipped if they are not installed, with a hint on how to install them, or fails, as
// package installed says. CONSORT_NPM names another directory of installed packages than
// .ci/npm/node_modules.
//
// [NeedPython] does the same for Python with gRPC, which Debian provides.
package realservers
