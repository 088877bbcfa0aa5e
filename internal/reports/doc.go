// SPDX-License-Identifier: Apache-2.0

// Package reports has the lists that the commands tools, resources, prompts, pins and
// check print: as JSON documents, whose members docs/command.md describes, and as text
// for people. It also says what is left of a budget.
package reports
