// SPDX-License-Identifier: Apache-2.0

// Package invoker makes callable tools: a definition that a model can read and
// a function that runs.
//
// [New] makes one of a Go function. The schema that the model sees comes from
// the argument type:
//
//	type Query struct {
//		City string `json:"city" jsonschema:"city to report on"`
//		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
//	}
//
//	weather, err := invoker.New("weather", "Report the weather.",
//		func(ctx context.Context, q Query) (Report, error) { ... }, nil)
//
// An [Invoker] is an interface of two methods, so tools can also come from
// elsewhere: [Raw] is for definitions that bring their own JSON Schema, and
// adapters of protocols are made of it. Invokers know nothing of the ensembles
// that they belong to, nor of the names under which a model sees them.
//
// # What the function can rely on
//
// It runs only with arguments that the schema allows, whatever the model
// wrote. A call that breaks the schema becomes a [Failure] whose message lists
// every violation with the place where it stands, so that the model can repair
// all of them at once:
//
//	The arguments do not fit the tool's input schema:
//	/city: is missing (required)
//	/days: 12 is greater than the maximum 7
//
// Results are held against the output schema in the same way. Enumerations and
// ranges are said by types that implement [Describer], or by a schema in
// [Options].
//
// # Failures
//
// A tool that fails is news for the model. The function returns an error;
// [AsFailure] makes a [Failure] of it, with a [Code] of one vocabulary for all
// transports and a message for the model. A plain error becomes
// [ExecutionFailed] with the error's text; [Failf] chooses the code. Causes,
// stacks and metadata are for logs and programs, and the model never sees
// them. A function that panics is a failure too, see [Panic].
//
// # The call
//
// [CallFrom] gives the function the [Call] that it runs for: an identity that
// is the same on every attempt, and a listener for [Progress].
//
// Invoke waits for the function, so that nothing runs on unseen. A function
// must return soon after its context ends. Those who call functions that may
// not do that keep a clock of their own, as the converse package does.
//
// # Schemas from strangers
//
// Schemas are checked when a tool is made: one that cannot be used is an error
// that says why, and one that can stays byte for byte as it was in the
// [Definition]. References to other documents are never followed. Size, depth
// and work are bounded, as [Raw] says, and a check that goes beyond them ends in a
// violation. docs/decisions/0002-json-schema.md has the reasons.
package invoker
