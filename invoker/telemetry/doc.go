// SPDX-License-Identifier: Apache-2.0

// Package telemetry shows where the time, the tokens and the failures of
// conversations go, in OpenTelemetry's traces and metrics.
//
// A [Telemetry] is made from the providers of the program and given to whatever
// begins work: conversations, ensembles and servers take one in their options:
//
//	instruments, err := telemetry.New(&telemetry.Options{
//		Tracers: otel.GetTracerProvider(),
//		Meters:  otel.GetMeterProvider(),
//	})
//	talk := converse.New(model, roster, &converse.Options{Telemetry: instruments})
//
// From there it travels in the context ([With], [From]), down to the connection
// that carries a call, so that nothing in between has to be told. Where the
// context has none, and with a nil *Telemetry, nothing is made and next to
// nothing is spent.
//
// # What there is to see
//
// One turn is one trace: an invoke_agent span, in it a chat span for each
// exchange with the model and an execute_tool span for each invocation, and in
// that, where a tool is another process's, a tools/call span of the client.
// The context goes along with the call (W3C Trace Context in MCP's _meta, in
// HTTP headers and in gRPC metadata), so that the spans of a server that takes
// part are in the same trace.
//
// Names and attributes are those of OpenTelemetry's semantic conventions for
// generative AI and MCP; docs/observability has the tables. What the conventions
// have no name for is under consort.
//
// # What is not recorded
//
// Arguments, results and messages are not recorded unless Options.Content asks
// for them; they are then redacted and cut. Trusted values that are secret are
// never recorded. Failures are recorded with their code, the words that the
// model, or the caller, was told, and the error behind them: traces are for
// those who may read the logs. Every text has a bound and is valid UTF-8.
//
// # Operations
//
// An [Agent], [Chat], [Tool], [Request] or [Connect] is for one goroutine at a
// time, and its End counts once. What does not end is never seen: where there may
// be a panic in between, End is deferred.
//
// The package imports the API of OpenTelemetry alone: no SDK, no exporter.
package telemetry
