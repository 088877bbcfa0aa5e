// SPDX-License-Identifier: Apache-2.0

// Package command is the command consort without its main: what the arguments
// mean, what is shown to people and programs, and the statuses to exit with. The
// program in cmd/consort is a call of Main; another main program is the same
// command, and may bring more along.
//
// docs/command.md has the flags, the JSON output and the exit statuses.
package command
