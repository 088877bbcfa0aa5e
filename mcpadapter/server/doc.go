// SPDX-License-Identifier: Apache-2.0

// Package server serves rosters of ensembles, and Go functions, to any MCP host: to one
// client over stdio, and to many over streamable HTTP.
//
//	srv := server.New(roster, &server.Options{Token: token})
//	defer srv.Close(ctx)
//	err := srv.ListenAndServe(ctx, "127.0.0.1:8080") // at /mcp
//
// # Clients
//
// Callers are identified by a bearer token, which [Options.Authenticate] turns into
// trusted values. Nothing else that a client sends becomes a trusted value. Limits,
// sessions and the identities of calls belong to one caller each.
//
// # Contents
//
// Tools and prompts have the names that a model of the roster would use, unless
// [Options.OwnNames] is set. Content, schemas and the metadata that package mcpadapter
// keeps of a server behind the roster are written out again, byte for byte. A failed
// call becomes a result with isError, with the failure under [mcpadapter.FailureKey] in
// its _meta.
//
// A call whose _meta has an [mcpadapter.IdempotencyKey] keeps that identity, within the
// scope of its caller. Questions of a tool to the user or to the model go to the client
// that called it, and a function can read that client's roots with [ClientRoots].
//
// All versions of the protocol from 2024-11-05 to 2026-07-28 are served.
// docs/serving.md says what clients see and what is refused.
package server
