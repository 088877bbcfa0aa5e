// SPDX-License-Identifier: Apache-2.0

// Consort holds conversations with a language model that uses the tools of MCP servers,
// from one TOML file.
//
//	consort demo            show a conversation; needs no key and no configuration
//	consort chat            talk with the model of ./consort.toml
//	consort run "PROMPT"    run one turn and print the answer on standard output
//	consort resume ID       continue an unfinished turn
//	consort approve ID      show the open question of a turn, and answer it
//	consort history         manage the stored conversations
//	consort tools           list the tools
//	consort call E TOOL {}  call one tool, without a model
//	consort resources       list the resources of the servers, or print one
//	consort prompts         list the prompts of the servers, or print one
//	consort serve           offer all of it to other MCP hosts
//	consort check           check the configuration and each server in it
//	consort pins            show the pinned tools and their changes
//	consort version         print the version
//
// docs/command.md documents the flags, the JSON output and the exit statuses.
package main
