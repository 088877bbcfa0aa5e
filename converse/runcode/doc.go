// SPDX-License-Identifier: Apache-2.0

// Package runcode lets a model call tools from a program, so that what one tool returns and
// another one receives need not pass through the model.
//
// [Ensemble] makes the tool run_code. Its programs are written in Starlark, a small Python
// without input and output. Each tool of the conversation is a function:
//
//	issues = tracker__list_issues(state="open")
//	details = gather(lambda i: tracker__get_issue(id=i["id"]), issues)
//	return [d["title"] for d in details if d["votes"] > 10]
//
// Each call of a function is an ordinary [canister.Invocation] of the conversation, with
// everything that belongs to it: approval, intent, limits, budgets, audit, trusted values and
// result. See [invoker.Tools].
//
// A program does not run while its calls do. It runs until it needs the result of a call,
// and again from its beginning when the result is there; the calls that were made have
// their results from the history. So it can wait for days, and go on in another process. It
// is deterministic: it has no clock, no random numbers, and no other input than results.
//
// # Bounds
//
// A program is text of a model, and may be hostile. Steps, memory, time, calls and nesting are
// bounded; see [Options]. Package go.starlark.net bounds steps alone, and one step can
// multiply a string by a million. So the program is rewritten before it runs: operators,
// attributes, slices and keys are calls of functions that measure what they receive, and
// charge what they return to the steps and the memory of the program.
package runcode
