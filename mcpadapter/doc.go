// SPDX-License-Identifier: Apache-2.0

// Package mcpadapter connects to MCP servers as ensembles. Within the library, the MCP
// SDK for Go is used only here and in subpackages; mcpadapter/server serves rosters.
//
// A server that runs as a subprocess takes one line:
//
//	files := mcpadapter.Command("files", "npx", "-y", "@modelcontextprotocol/server-filesystem", dir)
//	roster, err := ensemble.NewRoster(files)
//
// The other constructors return an [ensemble.Source] for [ensemble.New]: [Stdio] with
// options, [HTTP] for streamable HTTP, [SSE] for the older HTTP transport, and
// [InMemory] for a server of the SDK in this program:
//
//	source := mcpadapter.HTTP("https://example.com/mcp", &mcpadapter.HTTPOptions{BearerToken: token})
//	database := ensemble.New("database", source, nil)
//
// # Protocol versions
//
// The client asks for protocol 2026-07-28 first. If the server answers with an error,
// or does not answer, the client asks for 2025-11-25 or older on the same connection. If
// the server ends the connection, or does not answer over HTTP, the client asks again on
// a new one. All attempts share the time limit for connecting. The source remembers the
// result. [ClientOptions.Protocol] pins a version.
//
// # Results
//
// Each content block becomes one piece of [canister] content, and structured content
// becomes one more after them. Members that have no field in canister are kept in the
// metadata under "mcp/" and their own name: "mcp/annotations", "mcp/_meta", "mcp/icons"
// and so on. The inner object of an embedded resource uses "mcp/resource/_meta" and the
// like. The result itself uses "mcp/_meta" in the metadata of the output. A tool uses
// "mcp/annotations", "mcp/icons" and "mcp/_meta" in the metadata of its definition, and
// "mcp/title" if it has a title of its own besides the one in its annotations. A block
// of an unknown kind becomes its JSON as text, and is also kept as "mcp/block".
//
// A result with isError becomes a failure with the tool's own text. Its code is
// EXECUTION_FAILED, unless the result carries a code of its own in the form of
// [invoker.Failure.Structured], under [FailureKey] in its _meta or as structured
// content. Whatever such a result claims, the call is not repeated: it was answered.
//
// # Resources and prompts
//
// A connection is an [ensemble.Library]: it lists, reads, completes and subscribes.
// Subscriptions use resources/subscribe in the older protocols and subscriptions/listen
// in the newest. A description that breaks the protocol is left out and logged.
//
// Members without a field are kept in the metadata here too:
//
//   - members of a resource, template, prompt, argument or message: under "mcp/";
//   - members of each part of a resource that was read: under "mcp/resource/", as with
//     an embedded resource, so that "mcp/resource/_meta" has the content security
//     policy of an MCP App (SEP-1865);
//   - members of the result of a read: under "mcp/result/" in its first part;
//   - members of a completion: under "mcp/", those of its inner object under
//     "mcp/completion/".
//
// Package mcpadapter/server writes them out again, byte for byte. A resource of a Go
// function has them in the same places.
//
// # Calls
//
// The request's _meta carries the ID of the call as [IdempotencyKey]; it is the
// same on each attempt. A call with a progress listener carries its own progress token.
// When the context of a call ends, the server is sent the protocol's cancellation.
//
// # Telemetry
//
// If the context used to open a connection or make a call has a [telemetry.Telemetry],
// each request is a client span, and its context is sent in the request's _meta
// (SEP-414) and in the HTTP headers. Each attempt and each round of a call (SEP-2322)
// has its own span, so time spent waiting for the user is not attributed to the server.
// Pings, notifications and requests to listen have no spans. The duration of
// connections is measured. A request from the server, such as a question to the user,
// is a server span: a child of the server's own span if the request names one,
// otherwise of the call that it belongs to.
//
// # Failures
//
// JSON-RPC errors, HTTP statuses and the loss of a connection become failures of
// package invoker. A call that was never sent is UNAVAILABLE. A call that may have
// reached the server before the connection was lost is OUTCOME_UNKNOWN, whatever the
// tool's hints say. This package never repeats a call: the ensemble does that, because
// it knows how far a tool can be trusted.
//
// A message larger than [ClientOptions.MaxMessage] is never held in memory. Over
// streamable HTTP, only the call that it answers fails, with RESULT_TOO_LARGE. Where
// one stream carries all answers (stdio, SSE, memory), the connection ends.
//
// Every operation returns soon after its context ends, even where the SDK would not; if
// necessary, the underlying link is closed. After Close, no goroutine, process or
// socket of a connection is left, unless a function of this program ignores its
// context; Close then returns an error that says so.
//
// # Requests from a server
//
// [ClientOptions.Sample] and [ClientOptions.Elicit] answer a server that needs a model
// or a person, within [ClientOptions.AnswerTimeout]. Without Elicit, the question goes
// to the person of the call that it belongs to, if that call is known. Without Sample,
// the model of that call answers only with [ClientOptions.SampleCalls]. A server may
// give the model its own tools only with [ClientOptions.SampleTools]. The time limits
// of the call are suspended meanwhile ([invoker.Call.Hold]).
//
// # Subprocesses
//
// A subprocess gets only a small part of this program's environment: PATH, HOME, the
// locale, the directory for temporary files and a few more variables that hold no
// secrets. [StdioOptions.Environment] adds to them. Its stderr goes to the logger at
// debug level. If it dies, the error is an [ensemble.ProcessError] with the last lines
// of its stderr; if those are a stack trace, with the line that names the error.
//
// # HTTP
//
// Headers and tokens are sent only to the origin of the URL.
// [HTTPOptions].TrustedHeaders are sent only with requests made on behalf of the users
// that they name. Redirects to another origin are refused, and so is an SSE server that
// names another origin to send messages to. Errors do not contain URLs or tokens.
package mcpadapter
