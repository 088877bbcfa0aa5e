// SPDX-License-Identifier: Apache-2.0

// Package invoker makes tools that a model can call. A tool is a definition that
// the model reads and a function that runs.
//
// [New] makes a tool from a Go function. The schema that the model sees is
// inferred from the argument type:
//
//	type Query struct {
//		City string `json:"city" jsonschema:"city to report on"`
//		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
//	}
//
//	weather, err := invoker.New("weather", "Report the weather.",
//		func(ctx context.Context, q Query) (Report, error) { ... }, nil)
//
// [Methods] makes tools from the methods of a struct. [Invoker] is an interface
// with two methods, so tools can also come from elsewhere: [Raw] is for
// definitions that bring their own JSON Schema, and protocol adapters use it.
// Invokers do not know the ensembles that they belong to, nor the names under
// which a model sees them.
//
// # Checked arguments
//
// The function runs only with arguments that the schema allows, whatever the
// model wrote; for tools with their own schema, [Raw] documents the exceptions. If the
// arguments break the schema, the call fails with a [Failure]. Its message lists the
// violations and their locations, at most ten, so that the model can fix them together:
//
//	The arguments do not fit the tool's input schema:
//	/city: is missing (required)
//	/days: 12 is greater than the maximum 7
//
// Results are checked against the output schema in the same way.
//
// Struct tags restrict the values of a field. They are named after the keywords
// of JSON Schema:
//
//	Unit string `json:"unit" enum:"c,f" default:"c"`
//	Days int    `json:"days" minimum:"1" maximum:"7" default:"1"`
//	Mail string `json:"mail,omitempty" format:"email" maxLength:"200"`
//
// [New] lists them. Types that implement [Describer] define their own schema
// wherever they occur, and [Options] accept a whole schema.
//
// # Trusted values
//
// A tool acts for a user, whose identity must come from the program that verified
// it, never from the model. [Trusted] names such a fact. The program attaches it
// with [WithTrusted], and a tool that lists it in its Needs reads it from its
// context:
//
//	var User = invoker.NewTrusted[int64]("user_id")
//
// A call without it is refused before the tool runs. The schema that the model
// sees does not include it, and an argument with that name is refused and
// reported; see [Forged]. [Fill] does the same for tools that take the value as
// an argument, such as tools of an MCP server.
//
// # Failures
//
// A failed call is reported to the model. The function returns an error, and
// [AsFailure] turns it into a [Failure] with a message for the model and a [Code]
// that is the same for all transports. [Failf], [Invalid] and [UnavailableFor]
// make failures with messages for the model. Any other error becomes
// [ExecutionFailed] with a general message: its text may be confidential and goes
// only to the log and the audit trail, like causes, stacks and metadata. A
// function that panics fails too; see [Panic]. [Failure.Structured] formats a
// failure for programs.
//
// # The call
//
// [CallFrom] returns the [Call] that the function runs for. It has an ID that is
// the same on every attempt, and a listener for [Progress] and partial results.
// [AskFor] asks the person behind the call, [SampleText] the model of the
// conversation, and [Notef] logs to the observers of the call.
//
// Invoke waits for the function, so that no work continues unnoticed. A function
// must return soon after its context ends. Callers of functions that might not do
// so need a timer of their own, as package converse has one.
//
// # Untrusted schemas
//
// Schemas are checked when a tool is made. A schema that cannot be used is an
// error that gives the reason; a valid one is kept byte for byte in the
// [Definition], except for trusted arguments. References to other documents are never followed. Size, depth and
// work are limited as [Raw] documents, and a check that exceeds the limits ends
// in a violation. docs/decisions/0002-json-schema.md has the reasons.
package invoker
