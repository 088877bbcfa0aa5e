// SPDX-License-Identifier: Apache-2.0

// Package ensemble groups invokers that share a name scope and one life, keeps
// them connected, and gives each the one name that a model knows it by.
//
// The smallest ensemble is a group of Go functions, and the smallest roster
// holds just that:
//
//	roster, err := ensemble.NewRoster(ensemble.Local("local", weather, clock))
//	defer roster.Close(ctx)
//
// An MCP server is an ensemble too; so is whatever else has a [Source]. The
// constructors of package mcpadapter return sources, and [New] makes ensembles
// of them:
//
//	files := ensemble.New("files", source, &ensemble.Options{
//		CallTimeout: 10 * time.Second,
//		Deny:        []string{"delete_*"},
//	})
//
// An ensemble connects at its first use. One that cannot, because its command is
// misspelt or its server is down, does not keep the others from working: the model
// has its other tools. A program that wants to know connects at the start:
//
//	if err := roster.Connect(ctx); err != nil {
//		return err // or log it, and do without
//	}
//
// # Catalog, tool, call
//
// A conversation asks its roster for a [Catalog] at the beginning of each turn.
// The tools of it stay on offer, unchanged, until the end of the turn. A tool that
// a server adds in the meantime is offered behind them from the next exchange on
// ([Roster.Latest]); one that it changes or withdraws is so in the next turn.
// While nothing changes, [Roster.Catalog] returns the same pointer.
//
// The catalog knows each [Tool] by its name for the model, such as
// files__read_file; [NameFor] tells how names are made. [Tool.Invoke] makes one
// call, with the ensemble's limits around it, and its error is always an
// [*invoker.Failure] that can be put to the model. The function behind the tool
// finds the call in its context, and the [Settings] of its ensemble:
//
//	func report(ctx context.Context, query Query) (Report, error) {
//		settings, ok := ensemble.Settings[WeatherSettings](ctx)
//		...
//	}
//
// What cannot be offered does not stand in the way of what can: a tool that is
// denied, or has the name of another, or is one too many, is in [Catalog.Aside]
// with its reason, and an ensemble that cannot be reached in [Catalog.Away] with
// its error. Options.Screen may have a say in it, as the pins of package pins do,
// which notice that a tool is no longer what it was. Only one that is Required makes the catalog fail. Names and
// descriptions lose the characters that people cannot see and models can;
// [Snapshot].Notes tells of it.
//
// A list of tools stands until its connection says that it has changed, or, with
// Options.Refresh, for a time; [Roster.Refresh] asks anew at once. [Catalog.Of]
// and [Catalog.InCategory] find tools by ensemble and by category.
//
// # Resources and prompts
//
// A connection that is a [Library], such as one of an MCP server, also offers
// resources, which hold material to read, and prompts, which are messages made
// ready. [Roster.Resources] and [Roster.Prompts] list those of all ensembles, and
// [Roster.ReadResource], [Roster.GetPrompt] and [Roster.Complete] make use of
// them, with the time limits of a call. Since they change nothing, what is lost
// with its connection is asked again. URIs stay as the servers gave them; a
// prompt has its name as a tool has, see [Prompt.FullName]. The lists are kept until
// the connection says that they have changed, and are asked for in nobody's
// name, because they are shown to all.
//
// [Roster.Document] makes a resource a canister, and [Messages.Canisters] a prompt, for
// a conversation to add. [ResourceTools] is for a model that is to look around
// by itself. [LocalLibrary] offers resources and prompts of Go functions.
//
// [Roster.Watch] brings word of what changed: tools, resources, prompts, an
// ensemble that went away or came back, and the contents of those resources to
// which somebody subscribed with [Roster.Subscribe]. Subscriptions survive the
// loss of a connection.
//
// # Trusted values
//
// What the program knows and the model must not choose reaches a tool beside
// its arguments ([invoker.Trusted]). Options.Fill gives it to tools that know
// only arguments, and Options.Needs refuses what comes without.
//
// # Life
//
// An ensemble connects when it is first used, and again when it is used after
// its connection was lost; [Ensemble.Connect] does it ahead of time. However
// many callers want a connection, there is one attempt, which ends by itself
// after Options.ConnectTimeout; each caller waits no longer than its own
// context. There is one connection at a time: a fresh one is opened when the
// one before is gone. See [State] for the way through an ensemble's life, and
// [Ensemble.Snapshot] for where it stands.
//
// A server that is down costs little. A failed attempt is remembered, for 1 s at
// first and for 30 s after some more, and uses of the ensemble in this time
// report it in place of trying again; and once an ensemble is known to be down,
// no catalog waits for it longer than half a second, although the attempt goes
// on. [Ensemble.Connect] takes no notice of this memory.
//
// # Supervision
//
// Options.Restart makes more of it. With RestartAlways an ensemble does not wait
// to be used: it comes back by itself, with waits that grow and are jittered.
// One that keeps failing is [Parked]: it says so with the cause and the count,
// its uses fail at once, and it is not tried until [Ensemble.Connect] is called.
//
//	files := ensemble.New("files", source, &ensemble.Options{
//		Restart:        ensemble.Restart{Policy: ensemble.RestartAlways},
//		KeepAlive:      30 * time.Second,
//		IdleDisconnect: 10 * time.Minute,
//	})
//
// KeepAlive finds out that the other end is gone when nothing else does, by
// asking a silent connection for an answer, and while a call runs by whether the
// other end still reads, where that is known ([Unreader]). IdleDisconnect closes what nobody
// calls, such as a server's process; the tools stay in the catalog as they were
// listed last, which does not wake the ensemble, and the next call does. On
// every fresh connection the tools are listed again, and what differs is logged
// and in [Snapshot].LastChange.
//
// # At most once
//
// A [Tool] is bound to its ensemble and its own name, not to a connection, and
// so outlives any of them. A call for which no connection could be had is
// UNAVAILABLE, and certainly was not made. When the connection is lost during a
// call, it may or may not have taken effect: the failure is OUTCOME_UNKNOWN, in
// words that lead a model to check. Such a call is repeated, once and with the
// same ID, only if the tool says that this does no harm and Options.Trust
// believes it; by default that is a tool that is read-only, and a function of the
// program that says either. A call that the death of the process has cut off is made
// again, with its key, if the tool says either and the server is believed at all.
//
// # Time
//
// A call that gives no sign of life ends after Options.CallTimeout, and each
// report of progress is one; Options.CallLimit ends it whatever it reports. The
// failure names the limit and the last report. Both stand still while
// [invoker.Call.Hold] holds them, as a source does when a person is asked. An
// answer that comes too late is dropped and counted.
//
// # Health
//
// [Ensemble.Snapshot] tells a Go program all there is to know of an ensemble,
// [Roster.Health] says it in a form for others, and [HealthHandler] over HTTP.
// None of them connects to anything, or waits.
//
// Options.Telemetry shows the same to OpenTelemetry, and each attempt to connect as
// a trace of its own. Calls are in the trace of whoever makes them; see package
// telemetry. What the log tells is in docs/observability/logs.md.
//
// # End
//
// Whoever makes an ensemble or a roster closes it. [Ensemble.Close] ends the
// calls in flight, closes the connection, politely for as long as its context
// and Options.CloseTimeout last, and returns when nothing is left. What would
// not end, such as a Go function that ignores its context, is named in the
// error, and a later Close waits for it again. [Ensemble.Disconnect] does the
// same for an ensemble that is to be used again.
//
// # Sources
//
// A [Source] makes fresh connections, and a [Connection] is good for one life:
// it lists, serves, says when it is lost, and closes. All else is the
// ensemble's: time-outs, single flight, memory, filters, names. The ensemble
// does not trust a source with its own liveness: one that ignores contexts or
// panics fails by itself and keeps no caller waiting. Whoever writes a source
// runs the suite in package ensembletest over it.
package ensemble
