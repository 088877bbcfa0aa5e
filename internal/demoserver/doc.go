// SPDX-License-Identifier: Apache-2.0

// Package demoserver has two MCP servers to try things with, written with the
// server side of the MCP SDK as anybody's would be: atlas, which knows a few
// cities, and satchel, which keeps a packing list. What they say is made up, but
// always the same.
//
//	err := demoserver.ServeStdio(ctx, demoserver.Atlas(time.Second), os.Stdin, os.Stdout)
//
// It returns when its input ends, so that a server does not outlive the program
// that started it.
package demoserver
