// SPDX-License-Identifier: Apache-2.0

// Package clients checks that third-party clients can use the runtime's servers: a client
// built on the protocol's TypeScript SDK, and the command line of the MCP inspector, each
// over stdio and over streamable HTTP. They use a small shop with one item of each kind;
// the test binary is its server.
package clients
