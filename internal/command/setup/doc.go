// SPDX-License-Identifier: Apache-2.0

// Package setup writes the first configuration: it finds the MCP servers that other hosts
// on this machine use, asks a few questions and writes a file with comments.
package setup
