// SPDX-License-Identifier: Apache-2.0

// Package converse holds conversations with a language model that uses tools.
//
// A [Conversation] brings together a [Model] and the tools of a roster. Send
// adds what the user says and works until the turn is done: the model is
// asked, the tools that it asks for run, it is told what they returned, and
// so on until it has nothing more to ask:
//
//	if err := roster.Connect(ctx); err != nil {
//		return err // a server that cannot be reached
//	}
//	talk := converse.New(model, roster, nil)
//	for event, err := range talk.Send(ctx, canister.Text("What should I wear in Oslo?")) {
//		if err != nil {
//			return err
//		}
//		if delta, ok := event.(converse.TextDelta); ok {
//			fmt.Print(delta.Text)
//		}
//	}
//
// [Conversation.Ask] returns the whole turn in place of its events.
//
// A turn goes on without the tools of a server that cannot be reached, unless it is
// Required: [TurnStarted].Away has it with its error, and only the logger of its ensemble
// reports it besides. [ensemble.Roster.Connect] returns such errors before the first
// turn.
//
// # Events
//
// The events of a turn are a closed set; see [Event]. A turn is one
// [TurnStarted], any number of exchanges, each after a [ToolsAdded] if there are
// more tools than before, and one [TurnCompleted]. An exchange is a [MessageStarted], deltas and announcements of calls, the [MessageCompleted] whose canister is in
// the history, an [InvocationRequested] for each tool that the model asks for,
// and an [ExchangeCompleted]. The invocations of one message then run side by
// side, up to Limits.Parallel; each yields an [InvocationStarted] if it really
// runs, its progress, and an [InvocationCompleted]. Whatever order they finish
// in, their results enter the history in the order of the request; with a log they
// enter as they come, and the model is told of them in that order. A call that waits
// for somebody yields a [WaitStarted] instead, and a [WaitEnded] when it goes on.
//
// Package eventjson gives each event the JSON form of docs/events.md.
//
// # Two kinds of failure
//
// A tool that fails is news for the model: an unknown name, arguments that are
// no JSON or break the schema, a refusal, a time-out, a crash, a panic each
// become a [canister.Result] that says truthfully what happened. A runtime that
// fails is an error for the caller, the last pair of the sequence: a
// [*ModelError], a required ensemble that cannot be reached, a journal that
// cannot write, the end of the context.
//
// # Functions of the program
//
// What the program gives to a conversation may panic, or hang. A panic never ends the
// process: one of the model, the log, the journal, the ledger, NewID or Now is an
// error that names it; one during a call is its result, INTERNAL; one of Redact
// withholds the text; one of Screen sets the tool aside; one of the audit, the logger
// or the telemetry costs a record. A panic of the loop over the events is the
// caller's own and passes unchanged. The conversation can go on after each.
//
// Send waits for a function of the program as long as its context lasts. One that has
// not returned 10 seconds later is left behind on its own goroutine: the error of Send
// names it, and so does that of [Conversation.Close] as long as it runs. A call of
// which such a function is a part has the result OUTCOME_UNKNOWN if it was made. An
// append to the log, or to the journal, that was left behind may have happened or not:
// no other piece of work begins before it has returned, and then with what the log has.
// NewID, Now, the logger and Screen are not waited for in this way, and must not block;
// neither must the sink of the audit.
//
// A turn that reaches one of its [Limits] has not failed: it ends with that
// [Reason], and the history can go on.
//
// # Stopping
//
// Leaving the loop over the events, or ending the context, stops the work at
// once. What the model had streamed of an unfinished message is dropped, calls
// that ran are answered as interrupted, calls that had not started say so. The
// history is whole and can be sent to the model again.
//
// # The history is the state
//
// What comes next is determined by the canisters alone: [Next] is the pure
// function that the loop itself asks before every step. A program can take the
// canisters at any moment, keep them in their JSON form, and give them to a
// conversation in another process, where [Conversation.Continue] carries on;
// [Conversation.Step] does one step at a time. Options.Journal sees each
// canister before it enters the history, and identities and times come from
// Options.NewID and Options.Now.
//
// # Conversations that last
//
// With Options.Log, a [history.Log] of package history, a conversation outlives its
// process: it begins with what the log has under its ID, and appends to it before
// anything enters the history. [Conversation.Run] can be called again after any
// crash, in any process. Of two that carry on the same conversation, one is told
// that the other was faster, and stops before its next call: each call is preceded
// by a [canister.Intent] in the log.
//
// An intent without a result is a call that was made or not when a process died. If
// the tool is read-only or idempotent ([ensemble.Tool.Repeatable]) the call is made again with the same [invoker.Call] ID; otherwise Options.Doubt says whether the model is told
// OUTCOME_UNKNOWN or somebody is asked.
//
// A decision or an answer that takes longer than a process lasts is waited for in the
// log. Options.Approve returns [Defer], Options.Ask returns [Later], and a
// [canister.Wait] enters the history. When nothing else is left to do the turn ends
// with [ReasonWaiting], and nothing of it stays in memory. [Answer] answers the wait,
// from anywhere, and the next Run carries on:
//
//	turn, err := talk.Run(ctx)
//	if turn.Reason == converse.ReasonWaiting {
//		show(turn.Waits)
//	}
//	// days later, in another process:
//	err = converse.Answer(ctx, store, id, canister.Answer{Wait: wait, Verdict: canister.VerdictAllow, By: "dana"}, time.Now())
//
// A wait for a [canister.WaitTimer] that a program adds ([Conversation.Add]) holds the
// whole conversation until its deadline.
//
// [Conversation.Suspend], or a context that is cancelled with [ErrSuspended], puts work
// down without giving open calls a result. docs/durability.md has a table of what
// follows from what.
//
// # Trusted values and the audit
//
// What the program knows of whom it works for, and the model must neither see
// nor choose, is in Options.Trusted or in the context of a turn: tools read it
// from the contexts of their calls, see [invoker.Trusted]. A model that names
// such a value as an argument is refused and logged. Options.Audit keeps one
// record of every invocation, whatever became of it. Why a tool failed
// unexpectedly is in the audit and in the log, and the model is told that it
// failed.
//
// # Tools that ask
//
// A tool can ask the person ([invoker.Call.Ask]), whom Options.Ask reaches, and
// the model ([invoker.Call.Sample]), in an exchange with a history of its own
// and without the tools of the conversation. It can bring tools of its own: the
// model says which it wants called, and the tool that asks calls them. Such exchanges count under Limits.Exchanges and
// Limits.Tokens like all others; the metadata of the result remember them, so
// that [Next] counts them too. The model is given the tokens that the request
// allows for the answer, and no more than Limits.Tokens leaves; those of several
// tools at a time are set aside for each, and one for which nothing is left
// waits until another is over. A temperature and words to stop at are passed on,
// and left out when the model refuses a request with them. The wish for another
// model is not passed on.
//
// # A conversation as a tool
//
// Package agenttool makes an invoker that holds conversations, one turn for each
// call: an agent for other agents, in the roster of another conversation or over MCP.
//
// # Secrets
//
// A server can print its environment. Options.Redact stands between what tools
// and servers say and the history, the events and the errors: a program that
// knows its secrets has them taken out there. Package config does. Trusted
// values that are marked as secret are taken out in the same places, and out
// of the log.
//
// # What can be seen
//
// With Options.Telemetry, each Send, Continue and Step is a span (invoke_agent),
// and in it each exchange with the model (chat), those that tools ask for among
// them, and each invocation (execute_tool), also one that did not run; see package
// [github.com/consort-go/consort/invoker/telemetry]. The contexts of models, tools,
// approvals and the journal carry them. A span of work counts the exchanges that
// were begun, the invocations that got a result and the tokens of that work.
//
// The error.type of an invocation is the code of its failure. That of an exchange,
// and of the work that it ended, is
//
//   - the status of the server's answer, such as 429, or without one
//   - UNAVAILABLE if the model could not be reached, or broke off
//   - EXECUTION_FAILED if it failed with a name of its own for that
//   - PROTOCOL if its reply cannot be used
//   - TIMEOUT if the time of the turn or of a context was up, or nothing came for
//     too long
//   - CANCELED if the context ended, or the caller left the loop
//   - INTERNAL for all else: a journal that fails, a panic.
//
// A turn that a limit ends has not failed: consort.turn.reason tells.
//
// Of what a turn writes to Options.Logger, each line has the identity of the
// conversation, and those of the trace and the span if there are any.
//
// # Long conversations
//
// With Options.Compaction, a conversation that nears the window of its model
// becomes shorter for the model: old results are cut, or what is old is summarised.
// The history loses nothing. [Next] says so with [Compact]; one Document with a
// mark in its metadata is what comes of it, and requests follow from the history
// and its marks, which makes them the same in every process. Instructions stay in
// front, the user's last message and the last exchanges stay as they are, and no
// call is parted from its results. A summary is an exchange, and counts as one;
// [CompactionCompleted] tells of it. A request that the model refuses as too long,
// with [CodeContextLength], is followed by a compaction, and tried again, as long
// as there is something to gain. A conversation that is opened from its log takes up
// no more than the newest summary has left, with the instructions and the turn that
// the summary stands in. See docs/long-conversations.md.
//
// # Budgets
//
// Options.Budget bounds what conversations spend of tokens, money and time, each
// by itself, those of one person, or all that share a ledger; see package budget.
// What an exchange may cost is reserved before the model is asked, so that those
// side by side cannot spend the same twice, and the answer is bounded by what is
// left. Where too little is left, the turn ends with [ReasonBudget] and names the
// cap. Nothing of that is in the history: Continue tries again.
//
// # Tools within a turn
//
// The tools that a turn begins with stay on offer until it ends, each with its
// definition and in its place. Tools that servers add meanwhile are offered behind
// them from the next exchange on, and a [ToolsAdded] says so; whatever else servers
// change is seen by the next turn, as TurnStarted.Added and Removed. A call of a
// tool that is gone fails with TOOL_NOT_FOUND, or UNAVAILABLE with its server.
//
// Another process that carries a turn on takes the tools as they are then. Which of
// them were added to the turn, and in what order, is in the metadata of its
// messages, so that it offers the same tools in the same order if no server has
// changed any since.
//
// Tools that the model's API cannot take are set aside with the reason.
package converse
