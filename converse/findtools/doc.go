// SPDX-License-Identifier: Apache-2.0

// Package findtools lets a model find tools by words, so that it need not read the
// definitions of all of them before the first word.
//
// [Ensemble] makes two tools: find_tools returns the definitions of the tools that fit a
// text best, and call_tool calls one of them. [New] wraps a model so that it is shown only
// these two, the tools that are pinned, and the tools that the client of a conversation brings:
//
//	tools, err := findtools.Ensemble("tools", servers...)
//	...
//	roster, err := ensemble.NewRoster(append(servers, tools)...)
//	...
//	talk := converse.New(findtools.New(model, &findtools.Options{Tools: "tools"}), roster, nil)
//
// The definitions that a model has found are in the results of its searches, at the end of
// the conversation, and stay there. So nothing that was sent before changes, and the prompt
// stays cached.
//
// In the conversation there is no call_tool: the call of a tool through it is an ordinary
// [canister.Invocation] of the tool itself, with everything that belongs to it: approval,
// intent, limits, budgets, audit and trusted values. Only requests to the model show it as
// the model wrote it.
package findtools
