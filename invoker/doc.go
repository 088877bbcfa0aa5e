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
// [Methods] makes many of a struct with methods. An [Invoker] is an interface of
// two methods, so tools can also come from elsewhere: [Raw] is for definitions
// that bring their own JSON Schema, and adapters of protocols are made of it.
// Invokers know nothing of the ensembles that they belong to, nor of the names
// under which a model sees them.
//
// # What the function can rely on
//
// It runs only with arguments that the schema allows, whatever the model
// wrote; [Raw] says what tools with a schema of their own may be called without.
// A call that breaks the schema becomes a [Failure] whose message lists
// every violation with the place where it stands, so that the model can repair
// all of them at once:
//
//	The arguments do not fit the tool's input schema:
//	/city: is missing (required)
//	/days: 12 is greater than the maximum 7
//
// Results are held against the output schema in the same way.
//
// What a field allows is said by struct tags that are named as JSON Schema
// names its keywords:
//
//	Unit string `json:"unit" enum:"c,f" default:"c"`
//	Days int    `json:"days" minimum:"1" maximum:"7" default:"1"`
//	Mail string `json:"mail,omitempty" format:"email" maxLength:"200"`
//
// [New] lists them. Types that implement [Describer] say the same wherever they
// occur, and [Options] take a whole schema.
//
// # For whom it runs
//
// A tool acts for somebody, and who that is must come from the program that
// verified it, never from the model. [Trusted] names such a fact; the program
// attaches it with [WithTrusted], and a tool that lists it in its Needs reads
// it from its context:
//
//	var User = invoker.NewTrusted[int64]("user_id")
//
// A call without it is refused before the tool runs. The schema that the model
// sees does not have it, and an argument by that name is refused and reported,
// see [Forged]. [Fill] does the same for tools that want it as an argument, such
// as those of an MCP server.
//
// # Failures
//
// A tool that fails is news for the model. The function returns an error;
// [AsFailure] makes a [Failure] of it, with a [Code] of one vocabulary for all
// transports and a message for the model. [Failf], [Invalid] and
// [UnavailableFor] are how a tool speaks to the model. Any other error becomes
// [ExecutionFailed] with a message that says no more than that: its text can
// hold what is not the model's to know, and is for the log and the audit trail,
// as are causes, stacks and metadata. A function that panics is a failure too,
// see [Panic]. [Failure.Structured] writes a failure for programs.
//
// # The call
//
// [CallFrom] gives the function the [Call] that it runs for: an identity that
// is the same on every attempt, and a listener for [Progress] and for pieces of
// the result that are there already. [AskFor] asks the person behind the call,
// [SampleText] the model of the conversation, and [Notef] writes to whoever
// watches.
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
