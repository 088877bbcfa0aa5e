// SPDX-License-Identifier: Apache-2.0

// Consort holds conversations with a language model that uses the tools of MCP
// servers, from one TOML file.
//
//	consort demo            a conversation to watch; needs no key and no configuration
//	consort chat            talk with the model of ./consort.toml
//	consort run "PROMPT"    one turn, the answer on standard output
//	consort resume ID       carry on with a turn that was not done
//	consort approve ID      what a turn waits for, and the answer to it
//	consort history         the conversations that are kept
//	consort tools           the tools on offer
//	consort call E TOOL {}  one call of one tool, without a model
//	consort resources       the resources that the servers offer
//	consort prompts         the prompts that the servers offer
//	consort serve           all of it, for other MCP hosts
//	consort check           the configuration, and each server in it
//	consort pins            the pinned tools, and what has changed
//	consort version
//
// docs/command.md has the flags, the JSON output and the exit statuses.
package main
