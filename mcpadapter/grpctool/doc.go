// SPDX-License-Identifier: Apache-2.0

// Package grpctool connects ensembles to tool servers over gRPC, and serves a roster
// over gRPC. It is the module's only gateway to gRPC.
//
// Each server takes one line, with or without a Dapr sidecar:
//
//	farm := ensemble.New("farm", grpctool.Source("tools.example.com:443", nil), nil)
//	plantation := ensemble.New("plantation", grpctool.Dapr("plantation-mcp", nil), nil)
//
// They are then ensembles like any other and get everything that package ensemble
// provides: restarts, limits, health.
//
// # The service
//
// The tool service has two RPCs, ListTools and CallTool; package toolspb and the
// protobuf files next to it define its messages. The client also detects servers that
// know the service by the name farmer_power.mcp.v1.McpToolService (see
// [Options.Service]); such a server need not be changed or recompiled. The service
// carries no progress, no questions to the user and no notification that the tools have
// changed, so they are listed on each connection.
//
// # MCP over gRPC
//
// For everything beyond that service, MCP messages are sent over gRPC unchanged, as
// frames of a stream: a [Server] with [ServerOptions.MCP] serves it to the same clients,
// [MCP] is the source of an ensemble, and [DialMCP] is a transport for clients of the
// MCP SDK.
//
// # What goes over the wire
//
// Connections use TLS unless [Options.Plaintext] is set. Without TLS, tokens and
// metadata are sent only within this machine, unless [Options.PlaintextSecrets] is set.
// Trusted values are sent as metadata, and only with calls: see
// [Options.TrustedMetadata].
//
// The ID of the call is sent as idempotency_key, the same on each attempt, for
// servers that check it. gRPC sends the deadline of the call's context, if it has one,
// and its cancellation to the server.
//
// # Results
//
// The result is a JSON value: a string becomes text, null becomes no content, and
// anything else structured content. If one value cannot carry the content, a server of
// this package adds the whole content, in the form of docs/canisters.md.
//
// # Errors
//
// The error codes of the contract and the gRPC statuses become failures of package
// invoker, as listed in docs/grpc.md. A call that was never sent is UNAVAILABLE; a call
// that may have reached the server but got no response is OUTCOME_UNKNOWN. The package
// gives gRPC no configuration that would let it send a call twice. By itself, gRPC
// resends only requests that a server has certainly not processed.
//
// A connection is lost when its HTTP/2 connection is lost. If the server drains the
// connection, as servers do before they are replaced, calls on it still get their
// responses. Meanwhile new calls use another HTTP/2 connection, and Changed reports
// that the tools of the server may have changed.
package grpctool
