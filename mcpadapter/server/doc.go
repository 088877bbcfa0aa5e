// SPDX-License-Identifier: Apache-2.0

// Package server serves a roster of ensembles, and Go functions, to any MCP host: to one
// client over stdio, and to many over streamable HTTP.
//
//	srv := server.New(roster, &server.Options{Token: token})
//	defer srv.Close(ctx)
//	err := srv.ListenAndServe(ctx, "127.0.0.1:8080") // at /mcp
//
// # Clients
//
// Clients are identified by a bearer token, which [Options.Authenticate] turns into
// trusted values. Nothing else that a client sends becomes a trusted value. Each client
// has its own limits, sessions and call IDs.
//
// # Contents
//
// Tools and prompts have the names that a model of the roster would use, unless
// [Options.OwnNames] is set. Content, schemas and metadata of an MCP server in the
// roster are passed on unchanged, byte for byte. A failed call becomes a result with isError, with the failure under [mcpadapter.FailureKey] in
// its _meta.
//
// A call whose _meta has an [mcpadapter.IdempotencyKey] uses that key as its ID,
// separately for each client. Elicitation and sampling requests of a tool go to the
// client that called it, and a function can read that client's roots with [ClientRoots].
//
// All versions of the protocol from 2024-11-05 to 2026-07-28 are served.
// docs/serving.md says what clients see and what is refused.
package server
