// SPDX-License-Identifier: Apache-2.0

// Package telemetry records the time, tokens and failures of conversations as
// OpenTelemetry traces and metrics.
//
// A [Telemetry] is made from the program's providers. Conversations, ensembles
// and servers take one in their options:
//
//	instruments, err := telemetry.New(&telemetry.Options{
//		Tracers: otel.GetTracerProvider(),
//		Meters:  otel.GetMeterProvider(),
//	})
//	talk := converse.New(model, roster, &converse.Options{Telemetry: instruments})
//
// From there the context carries it ([With], [From]) down to the connection used
// for a call, so that the code in between does not need to pass it on. If the
// context has none, or the *Telemetry is nil, nothing is recorded and the cost is
// close to zero.
//
// # Traces
//
// One turn is one trace: an invoke_agent span contains a chat span for each
// exchange with the model and an execute_tool span for each invocation. If the
// tool belongs to another process, the latter contains the client's tools/call
// span. The trace context is sent with the call (W3C Trace Context in MCP's
// _meta, in HTTP headers and in gRPC metadata), so that the spans of an
// instrumented server are in the same trace.
//
// Names and attributes follow OpenTelemetry's semantic conventions for generative
// AI and MCP; docs/observability has the tables. Names that the conventions do
// not define begin with consort.
//
// # What is not recorded
//
// Arguments, results and messages are recorded only if Options.Content is set,
// and are then redacted and shortened. Secret trusted values are never recorded.
// Failures are recorded with their code, the message for the model or the caller,
// and the underlying error: only people who may read the logs should have access
// to traces. Every text has a maximum length and is valid UTF-8.
//
// # Operations
//
// An [Agent], [Chat], [Tool], [Request] or [Connect] is for one goroutine at a
// time, and only the first call of End counts. An operation that does not end is
// never recorded: if the code in between can panic, defer End.
//
// The package imports only the OpenTelemetry API: no SDK and no exporter.
package telemetry
