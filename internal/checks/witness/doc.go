// SPDX-License-Identifier: Apache-2.0

// Package witness shows that clients which nobody here wrote use what the
// runtime serves: one on the protocol's TypeScript SDK, and the command line of
// the MCP inspector, each over stdio and over streamable HTTP. What they use is
// a small shop with one of everything; the test binary is its server.
package witness
