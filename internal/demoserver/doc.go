// SPDX-License-Identifier: Apache-2.0

// Package demoserver provides two MCP servers for experiments, written with the server
// side of the MCP SDK: atlas, which knows a few cities, and satchel, which keeps a
// packing list. Their data is made up, but always the same.
//
//	err := demoserver.ServeStdio(ctx, demoserver.Atlas(time.Second), os.Stdin, os.Stdout)
//
// ServeStdio returns when its input ends, so that a server does not outlive the program
// that started it.
package demoserver
