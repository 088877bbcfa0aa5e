// SPDX-License-Identifier: Apache-2.0

// Package converse holds conversations with a language model that uses tools.
//
// A [Conversation] connects a [Model] with the tools of a roster. Send adds the user's
// message and runs the turn to its end: it asks the model, runs the tools that the
// model calls, returns their results to the model, and repeats this until the model
// calls no more tools:
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
// [Conversation.Ask] returns the whole turn instead of its events.
//
// If a server cannot be reached, a turn goes on without its tools, unless the server is
// Required: [TurnStarted].Away lists the server with its error, and apart from that
// only the logger of its ensemble reports it. [ensemble.Roster.Connect] returns such
// errors before the first turn.
//
// # Events
//
// The events of a turn are a closed set; see [Event]. A turn is one [TurnStarted], any
// number of exchanges, each after a [ToolsAdded] if there are more tools than before,
// and one [TurnCompleted]. An exchange is a [MessageStarted], deltas and announcements
// of calls, the [MessageCompleted] whose canister is in the history, an
// [InvocationRequested] for each tool that the model calls, and an [ExchangeCompleted].
// The invocations of one message then run in parallel, up to Limits.Parallel. Each
// yields an [InvocationStarted] if it really runs, its progress, and an
// [InvocationCompleted]. Whatever order they finish in, their results enter the history
// in the order of the request; with a log they enter as they arrive, and the model
// receives them in the order of the request. A call that waits for an answer from
// outside yields a [WaitStarted] instead, and a [WaitEnded] when it goes on.
//
// Package eventjson gives each event the JSON form described in docs/events.md.
//
// # Two kinds of failure
//
// A tool that fails is reported to the model: an unknown name, arguments that are not
// JSON or violate the schema, a refusal, a time-out, a crash and a panic each become a
// [canister.Result] that says truthfully what happened. A runtime that fails is an
// error for the caller, the last pair of the sequence: a [*ModelError], a required
// ensemble that cannot be reached, a log that cannot be written, the end of the context.
//
// # Functions of the program
//
// The functions that the program passes to a conversation may panic or hang. A panic
// never ends the process. A panic of the model, the log, the ledger, NewID
// or Now is returned as an error that names it; one during a call becomes its result,
// INTERNAL; one of Redact withholds the text; one of Screen sets the tool aside; one of
// the audit, the logger or the telemetry loses a record. A panic in the body of the
// caller's loop over the events belongs to the caller and passes unchanged. The
// conversation can go on after each of them.
//
// Send waits for a function of the program as long as its context lasts. If the
// function has not returned 10 seconds later, it is left behind on its own goroutine:
// the error of Send names it, and so does the error of [Conversation.Close] as long as
// it runs. If the function is part of a call that was made, the call has the result
// OUTCOME_UNKNOWN. If it is an append to the log, the append may or
// may not have happened: no other piece of work begins before it has returned, and the
// next one begins with the contents of the log. NewID, Now, the logger, Screen and the
// sink of the audit are not waited for in this way and must not block.
//
// A turn that reaches one of its [Limits] has not failed: it ends with that [Reason],
// and the history can be continued.
//
// # Stopping
//
// Leaving the loop over the events, or ending the context, stops the work: Send returns when
// the functions that it has called have returned, or 10 seconds later. The
// streamed part of an unfinished message is dropped, calls that ran get a result that
// says that they were interrupted, and calls that had not started get one that says so.
// The history is complete and can be sent to the model again.
//
// # The history is the state
//
// The canisters alone determine the next step: [Next] is the pure function that the
// loop itself calls before every step. A program can take the canisters at any moment,
// store them in their JSON form, and give them to a conversation in another process,
// where [Conversation.Continue] carries on; [Conversation.Step] does one step at a
// time. IDs and times come from Options.NewID and Options.Now.
//
// # Conversations that last
//
// With Options.Log, a [history.Log] of package history, a conversation outlives its
// process: it begins with the canisters that the log holds under its ID, and appends to
// the log before anything enters the history. [Conversation.Run] can be called again
// after any crash, in any process. If two processes carry on the same conversation, the
// slower one gets an error and stops before its next call, because a [canister.Intent]
// is appended to the log before each call.
//
// An intent without a result is a call that may or may not have been made when a
// process died. If the tool is read-only or idempotent ([ensemble.Tool.Repeatable]),
// the call is made again with the same [invoker.Call] ID; otherwise Options.AskDoubt
// decides whether the model is told OUTCOME_UNKNOWN or a person is asked.
//
// A decision or an answer can take longer than the process lives; the wait for it is
// then kept in the log. Options.Approve returns [Defer], Options.Ask returns [Later],
// and a [canister.Wait] enters the history. When nothing else is left to do, the turn
// ends with [ReasonWaiting], and nothing of it stays in memory. waits.Answer answers the
// wait from any process, and the next Run carries on:
//
//	turn, err := talk.Run(ctx)
//	if turn.Reason == converse.ReasonWaiting {
//		show(turn.Waits)
//	}
//	// days later, in another process:
//	err = waits.Answer(ctx, store, id, canister.Answer{Wait: wait, Verdict: canister.VerdictAllow, By: "dana"}, time.Now())
//
// A wait for a [canister.WaitTimer] that a program adds ([Conversation.Add]) holds the
// whole conversation until its deadline.
//
// [Conversation.Suspend], or a context that is cancelled with [ErrSuspended], stops
// work without giving open calls a result. docs/durability.md has a table of the
// consequences.
//
// # Trusted values and the audit
//
// Options.Trusted, or the context of a turn, holds the values that identify the
// program's user, and that the model must neither see nor choose. Tools read them from
// the contexts of their calls; see [invoker.Trusted]. If the model names such a value
// as an argument, the call is refused and logged. Options.Audit keeps one record of
// every invocation, whatever its outcome. If a tool fails unexpectedly, the audit and
// the log record the cause, and the model is told only that it failed.
//
// # Tools that ask
//
// A tool can ask the person ([invoker.Call.Ask]) through Options.Ask, and the model
// ([invoker.Call.Sample]) in an exchange with a history of its own and without the
// tools of the conversation. It can pass tools of its own: the model says which of them
// to call, and the tool that asked calls them. Such exchanges count under
// Limits.Exchanges and Limits.Tokens like all others; the metadata of the result record
// them, so that [Next] counts them too. The answer is limited to the tokens that the
// request allows, and to the tokens that Limits.Tokens leaves. If several tools ask at
// a time, tokens are reserved for each of them; if none are left for a tool, it waits
// until another one has finished. Temperature and stop sequences are passed on, and
// left out if the model refuses a request with them. A preference for another model is
// not passed on.
//
// # A conversation as a tool
//
// Package agenttool makes an invoker that holds conversations, one turn for each
// call: an agent for other agents, in the roster of another conversation or over MCP.
//
// # Secrets
//
// A server can print its environment. Options.Redact filters the output of tools and
// servers before it reaches the history, the events and the errors, so a program that
// knows its secrets can remove them there. Package config does. Trusted values that are
// marked as secret are removed in the same places, and from the log.
//
// # What can be seen
//
// With Options.Telemetry, each Send, Continue and Step is a span (invoke_agent). Its
// children are the exchanges with the model (chat), including those that tools ask for,
// and the invocations (execute_tool), including those that did not run; see package
// [github.com/consort-go/consort/invoker/telemetry]. The contexts of models, tools,
// approvals and the log carry the spans. The span of a piece of work counts the
// exchanges that it began, the invocations that got a result, and its tokens.
//
// The error.type of an invocation is the code of its failure. The error.type of an
// exchange, and of the work that it ended, is
//
//   - the HTTP status of the server's error response, such as 429; otherwise
//   - UNAVAILABLE if the model could not be reached, or the connection broke off
//   - EXECUTION_FAILED if the model failed with an error code of its own
//   - PROTOCOL if its reply cannot be used
//   - TIMEOUT if the time of the turn or of a context was up, or the model sent nothing
//     for too long
//   - CANCELED if the context ended, or the caller left the loop
//   - INTERNAL for everything else: a log that fails, a panic.
//
// A turn that a limit ends has not failed: consort.turn.reason says which limit it was.
//
// Each line that a turn writes to Options.Logger has the ID of the conversation,
// and the IDs of the trace and the span if there are any.
//
// # Long conversations
//
// With Options.Compaction, a conversation that nears the window of its model is
// shortened for the model: old results are cut, or older messages are summarised. The
// history loses nothing. [Next] requests it with [Compact]; the result is one Document
// with a mark in its metadata. Requests are built from the history and its marks, and
// so are the same in every process. Instructions stay in front, the user's last message
// and the last exchanges stay as they are, and a call is never separated from its
// results. A summary is an exchange, and counts as one; [CompactionCompleted] reports
// it. If the model refuses a request as too long, with [CodeContextLength], the
// conversation is compacted and the request tried again, as long as that makes it
// shorter. A conversation that is opened from its log loads only what remains after the
// newest summary, with the instructions and the turn that contains the summary. See
// docs/long-conversations.md.
//
// # Budgets
//
// Options.Budget bounds how many tokens, how much money and how much time conversations
// spend: each conversation by itself, all conversations of one person, or all that
// share a ledger; see package budget. The possible cost of an exchange is reserved
// before the model is asked, so that concurrent exchanges cannot spend the same amount
// twice, and the answer is limited to the amount that is left. If too little is left,
// the turn ends with [ReasonBudget] and names the cap. None of this is in the history:
// Continue tries again.
//
// # Tools within a turn
//
// The tools that a turn begins with stay on offer until it ends, with unchanged
// definitions and in the same order. Tools that servers add meanwhile are offered after
// them from the next exchange on, and a [ToolsAdded] reports them; the next turn sees
// all other changes, as TurnStarted.Added and Removed. A call of a tool that was
// removed fails with TOOL_NOT_FOUND, or with UNAVAILABLE if its server is gone.
//
// A process that continues a turn of another one takes the tools as they are then. The
// metadata of the messages record which tools were added to the turn, and in what
// order, so that the process offers the same tools in the same order if no server has
// changed any since.
//
// Tools that the model's API cannot accept are set aside with the reason.
package converse
