// SPDX-License-Identifier: Apache-2.0

// Package mcptest has what the tests of the MCP client and the MCP server share: a
// server whose answers a test writes, a server that asks the model of its client,
// recorded spans, and waits with a time limit.
package mcptest
