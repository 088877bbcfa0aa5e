// SPDX-License-Identifier: Apache-2.0

// Package mcpadapter makes ensembles of MCP servers, and MCP servers of
// rosters. It is the one doorway to the MCP SDK for Go.
//
// A server that runs as a subprocess takes one line:
//
//	files := mcpadapter.Command("files", "npx", "-y", "@modelcontextprotocol/server-filesystem", dir)
//	roster, err := ensemble.NewRoster(files)
//
// The other constructors return an [ensemble.Source], which [ensemble.New]
// makes an ensemble of: [Stdio] with options, [HTTP] for streamable HTTP,
// [SSE] for the transport before it, [InMemory] for a server of the SDK in
// this program:
//
//	source := mcpadapter.HTTP("https://example.com/mcp", &mcpadapter.HTTPOptions{BearerToken: token})
//	database := ensemble.New("database", source, nil)
//
// # Versions of the protocol
//
// A server is asked for protocol 2026-07-28 first. One that answers with an
// error is asked for 2025-11-25 or older on the same connection, and so is one
// that keeps silent, other than over HTTP; one that leaves is asked again on a
// fresh one. All of that happens within the time that there is to connect. The
// source remembers what it found.
// [ClientOptions.Protocol] pins a version.
//
// # What becomes of a result
//
// Each block of content becomes one piece of [canister] content, and
// structured content one more behind them. Whatever has no field there is
// kept in the metadata under "mcp/" and its own name: "mcp/annotations",
// "mcp/_meta", "mcp/icons" and so on, of an embedded resource's inner object
// "mcp/resource/_meta", of the result itself "mcp/_meta" in the metadata of
// the output, and of a tool "mcp/annotations", "mcp/icons", "mcp/_meta" and, if
// it has one beside that of its annotations, "mcp/title" in the metadata of its
// definition. A block of an unknown kind becomes its JSON as
// text, and is kept as "mcp/block" too. A result that says isError becomes a
// failure with the code EXECUTION_FAILED and the tool's own words, or with the
// code that it gives itself in the form of [invoker.Failure.Structured], under
// [FailureKey] in its _meta or as structured content. What such a result claims
// makes no call happen twice: it is an answer.
//
// # Resources and prompts
//
// A connection is an [ensemble.Library]: it lists, reads, completes and
// subscribes, by resources/subscribe of the older protocols and
// subscriptions/listen of the newest. A description that breaks the protocol is
// left out and logged.
//
// Members without a field are in the metadata here too: of a resource, template,
// prompt, argument and message under "mcp/"; of each part of a resource that was
// read under "mcp/resource/", as of an embedded one, so that "mcp/resource/_meta"
// has the content security policy of an MCP App (SEP-1865); of the result of that
// read under "mcp/result/" in its first part; of a completion under "mcp/", and of
// its inner object under "mcp/completion/". A [Server] writes them out again,
// byte for byte. A resource of a Go function has them in the same places.
//
// # What a call carries
//
// The identity of the call travels in the request's _meta as
// [IdempotencyKey], the same on each attempt. A call with a listener for
// progress carries a progress token of its own. When a call's context ends the
// server is sent the protocol's cancellation.
//
// # What is seen
//
// With a [telemetry.Telemetry] in the context that a connection is opened or a
// call made with, each request is a span of the kind client, and its context
// goes out in the request's _meta (SEP-414) and in the headers of HTTP. Each
// attempt has a span of its own, and so has each round of a call (SEP-2322):
// what a person takes to answer is no time of the server's. Pings,
// notifications and requests to listen have none. How long connections last is
// measured. A request of the server, such as a question to the person, is a
// span of the kind server, below the server's own span if it tells one, or
// else below the call that it belongs to.
//
// # When things go wrong
//
// JSON-RPC errors, HTTP statuses and the loss of a connection become failures
// of package invoker. A call that was never sent is UNAVAILABLE; one that may
// have reached a server that was then lost is OUTCOME_UNKNOWN, whatever the tool
// says of itself. Nothing here repeats a call: that is for the ensemble, which
// knows how far to trust a tool.
//
// A message of more than [ClientOptions.MaxMessage] is never held. Over
// streamable HTTP it costs the call that it answers, as RESULT_TOO_LARGE; where
// one stream carries all answers (stdio, SSE, memory) it ends the connection.
//
// Every operation returns soon after its context ends, also where the SDK
// would not; the link below is ended if that is what it takes. After Close
// no goroutine, process or socket of a connection is left, unless a function
// of this program ignores its context, which is then the error of Close.
//
// # When a server asks
//
// [ClientOptions.Sample] and [ClientOptions.Elicit] answer a server that needs
// a model or a person, for [ClientOptions.AnswerTimeout] at most. Without Elicit
// the person of the call does that the server asks for, where that is known;
// the model of the call does only with [ClientOptions.SampleCalls]. A server may give
// the model tools of its own only with [ClientOptions.SampleTools]. The time limits of
// the call stand still meanwhile ([invoker.Call.Hold]).
//
// # What a subprocess gets
//
// Of this program's environment a subprocess gets PATH, HOME, the locale, the
// place of temporary files and a few more that hold no secrets, and what
// [StdioOptions.Environment] gives it. Its stderr goes to the logger at debug
// level. What it says about the end of the server stands in the error when it
// dies, an [ensemble.ProcessError]: the line that names the error, if the last
// lines are those of a stack.
//
// # What goes over HTTP
//
// Headers and tokens go to the origin of the URL and nowhere else, and
// [HTTPOptions].TrustedHeaders with the requests of those whom they name: a
// redirect to another origin is refused, and so is an SSE server that names another to
// send messages to. URLs and tokens are kept out of errors.
//
// # The way out
//
// [NewServer] offers what a roster has to any MCP host, over stdio and over
// streamable HTTP:
//
//	server := mcpadapter.NewServer(roster, &mcpadapter.ServerOptions{Token: token})
//	defer server.Close(ctx)
//	err := server.ListenAndServe(ctx, "127.0.0.1:8080") // at /mcp
//
// Who calls is known by a bearer token, which [ServerOptions.Authenticate]
// turns into trusted values; nothing that a client writes becomes one.
// docs/serving.md says what clients see and what is refused.
package mcpadapter
