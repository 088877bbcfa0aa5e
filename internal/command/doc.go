// SPDX-License-Identifier: Apache-2.0

// package command implements the command consort: it parses arguments, writes output for
// people and for programs, and sets the exit status. The program in cmd/consort only
// calls [Main]; another main program provides the same command and may add engines.
//
// docs/command.md describes the flags, the JSON output and the exit statuses.
package command
