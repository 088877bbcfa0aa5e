// SPDX-License-Identifier: Apache-2.0

// Package wire holds what the MCP client (package mcpadapter) and the MCP server
// (package mcpadapter/server) read and write in the same way: protocol versions, names
// of metadata, trace context, roots, and time limits.
package wire
