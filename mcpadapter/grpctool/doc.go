// SPDX-License-Identifier: Apache-2.0

// Package grpctool makes ensembles of tool servers that are reached over gRPC,
// and offers a roster as such a server. It is the one doorway to gRPC.
//
// A server takes one line, and one that stands behind a Dapr sidecar another:
//
//	farm := ensemble.New("farm", grpctool.Source("tools.example.com:443", nil), nil)
//	plantation := ensemble.New("plantation", grpctool.Dapr("plantation-mcp", nil), nil)
//
// From there on they are ensembles like any other, with all that the supervisor
// of package ensemble does for those.
//
// # The service
//
// The tool service has two RPCs, ListTools and CallTool; package toolspb and
// the protobuf files beside it have its messages. A server that knows it by the
// name farmer_power.mcp.v1.McpToolService is found by itself: [Options.Service].
// Such a server need not be changed, or compiled anew. It carries no progress,
// no questions to a person and no word that the tools have changed, which are
// listed on each connection.
//
// # MCP over gRPC
//
// What is beyond that service is MCP, and MCP has messages for it. They go over
// gRPC as they are, as frames of a stream: a [Server] whose options have an
// mcpadapter.Server serves it to the same clients, [MCP] is the source of an
// ensemble, and [DialMCP] the transport of a client of the MCP SDK.
//
// # What goes over the wire
//
// There is TLS unless [Options.Plaintext] says otherwise. Tokens and metadata
// never leave this machine without it, unless [Options.PlaintextSecrets] says
// so. Trusted values go as metadata, with calls alone:
// [Options.TrustedMetadata].
//
// The identity of the call travels as idempotency_key, the same on each
// attempt, for servers that look there. The deadline of the call's context, if
// it has one, and its cancellation reach the server as gRPC has it.
//
// # What becomes of a result
//
// The result is a JSON value: a string becomes text, null nothing, and anything
// else structured content. A server of this package adds the whole content, in
// the form of docs/canisters.md, where one value does not carry it.
//
// # When things go wrong
//
// The codes of the contract and the statuses of gRPC become failures of package
// invoker, as docs/grpc.md lists. A call that was never sent is UNAVAILABLE;
// one that may have reached a server of which nothing more was heard is
// OUTCOME_UNKNOWN. gRPC is given no configuration by which it could send a call
// twice. What it does by itself is to send what a server has certainly not
// looked at.
//
// A connection is lost when its HTTP/2 connection is. One that the server winds
// up, as servers do that are replaced, gets its answers first. New calls go over
// another HTTP/2 connection meanwhile, and Changed says that the tools behind it
// may be others.
package grpctool
