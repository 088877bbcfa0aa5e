// SPDX-License-Identifier: Apache-2.0

// Package ensemble groups invokers that share a name scope and a lifetime, keeps them
// connected, and gives each a unique name for the model.
//
// The smallest ensemble is a group of Go functions. This is the smallest roster:
//
//	roster, err := ensemble.NewRoster(ensemble.Local("local", weather, clock))
//	if err != nil {
//		return err
//	}
//	defer roster.Close(context.WithoutCancel(ctx)) // a context that has ended forces the end
//
// An MCP server is an ensemble too, and so is anything else that has a [Source]. Package
// mcpadapter has sources, which [New] makes into ensembles, and mcpadapter.Command makes the
// ensemble of a command in one step:
//
//	files := ensemble.New("files", source, &ensemble.Options{
//		CallTimeout: 10 * time.Second,
//		Deny:        []string{"delete_*"},
//	})
//
// An ensemble connects at its first use. If one cannot connect, because its command is
// misspelt or its server is down, the others still work: the model has their tools. A
// program that wants to know connects at the start:
//
//	if err := roster.Connect(ctx); err != nil {
//		return err // or log it, and do without
//	}
//
// # Catalog, tool, call
//
// A conversation asks its roster for a [Catalog] at the beginning of each turn. The
// tools of the catalog stay on offer, unchanged, until the end of the turn. A tool that
// a server adds in the meantime is appended to them from the next exchange on
// ([Roster.Latest]); a tool that it changes or withdraws changes or disappears in the
// next turn. While nothing changes, [Roster.Catalog] returns the same pointer.
//
// The catalog finds each [Tool] by its name for the model, such as files__read_file;
// [NameFor] describes how names are made. [Tool.Invoke] makes one call within the
// limits of the ensemble, and its error is always an [*invoker.Failure] that can be
// shown to the model. The function that implements the tool finds the call in its
// context, and the [Settings] of its ensemble:
//
//	func report(ctx context.Context, query Query) (Report, error) {
//		settings, ok := ensemble.Settings[WeatherSettings](ctx)
//		...
//	}
//
// A tool or ensemble that cannot be offered does not affect the others. A tool that is
// denied, has the same name as another or exceeds the maximum is in [Catalog.Aside]
// with the reason, and an ensemble that cannot be reached is in [Catalog.Away] with its
// error. Options.Screen can set tools aside too: package pins uses it to notice that
// the definition of a tool has changed. The catalog fails if an ensemble that is
// Required cannot be reached, and otherwise only if its context ends or the roster is
// closed. Characters that are invisible to people but not to models
// are removed from names and descriptions; [Snapshot].Notes reports it.
//
// A list of tools is valid until its connection says that it has changed, or, with
// Options.Refresh, for a limited time; [Roster.Refresh] lists again at once.
// [Catalog.Of] and [Catalog.InCategory] find tools by ensemble and by category.
//
// # Resources and prompts
//
// A connection that is a [Library], such as one to an MCP server, also offers
// resources, which hold material to read, and prompts, which are prepared messages.
// [Roster.Resources] and [Roster.Prompts] list the resources and prompts of all
// ensembles, and [Roster.ReadResource], [Roster.GetPrompt] and [Roster.Complete] use
// them, with the time limits of a call. Since these requests change nothing, a request
// that is lost with its connection is repeated. URIs stay as the servers gave them; a
// prompt is named as a tool is, see [Prompt.FullName]. The lists are cached until the
// connection says that they have changed. They are shared by all callers, so the
// requests for them carry nothing about a caller.
//
// [Roster.Document] turns a resource into a canister, and [Messages.Canisters] a prompt
// into several, for a conversation to add. Package resourcetools lets a model
// explore resources by itself. Package local offers resources and prompts of Go functions.
//
// [Roster.Watch] reports changes: of tools, of resources, of prompts, of an ensemble
// that went away or came back, and of the contents of resources with a subscription
// ([Roster.Subscribe]). Subscriptions survive the loss of a connection.
//
// # Trusted values
//
// Values that the program knows and the model must not choose reach a tool separately
// from its arguments ([invoker.Trusted]). Options.Fill passes them to tools that accept
// only arguments, and Options.Needs refuses calls without them.
//
// # Life
//
// An ensemble connects when it is first used, and again when it is used after its
// connection was lost; [Ensemble.Connect] connects ahead of time. All callers that want a
// connection share one attempt. Options.ConnectTimeout bounds it once the source is asked
// to open; each caller waits no longer than its own context. There is one connection at a
// time: a fresh one is opened only when the previous one is gone. See [State] for the
// states of an ensemble, and [Ensemble.Snapshot] for its current state.
//
// A server that is down costs little. A failed attempt is remembered, for 1 s at first
// and for up to 30 s after more failures; uses of the ensemble in this time report the
// failure instead of trying again. Once an ensemble is known to be down, no catalog
// waits for it longer than half a second, unless it is Required; the attempt goes on.
// [Ensemble.Connect] ignores remembered failures.
//
// # Supervision
//
// Options.Restart adds supervision. With RestartAlways, an ensemble reconnects by
// itself, without being used, with growing, jittered waits, and so does one that is
// Required. One that keeps failing is
// [Parked]: it reports the cause and the number of failures, its uses fail at once, and
// it does not reconnect until [Ensemble.Connect] is called.
//
//	files := ensemble.New("files", source, &ensemble.Options{
//		Restart:        ensemble.Restart{Policy: ensemble.RestartAlways},
//		KeepAlive:      30 * time.Second,
//		IdleDisconnect: 10 * time.Minute,
//	})
//
// KeepAlive notices a dead peer when nothing else does. It asks a silent connection for
// an answer; while a call runs, it checks whether the peer still reads, where that is
// known ([Unreader]). IdleDisconnect closes a connection without calls and subscriptions, and so ends
// a server's process, for example. The tools stay in the catalog as they were last
// listed. Asking for the catalog does not reconnect the ensemble, but the next call
// does. On every fresh connection the tools are listed again; differences are logged
// and are in [Snapshot].LastChange.
//
// # At most once
//
// A [Tool] is bound to its ensemble and its own name, not to a connection, and so
// outlives connections. A call without a connection fails with UNAVAILABLE, or
// UNAUTHORIZED if the server needs a login, and certainly was not made. A call during
// which the connection is lost may or may not have taken effect: the failure is
// OUTCOME_UNKNOWN, with a message that leads a model to check. Such a call is repeated,
// once and with the same ID, only if the tool declares that this does no harm and
// Options.Trust believes it. By default, these are tools that are read-only, and the
// functions of a [Local] ensemble that are declared read-only or idempotent. A call that
// was cut off when the program died is made again, with its idempotency key, if the tool is declared
// read-only or idempotent and Options.Trust is not TrustNone.
//
// # Time
//
// A call that shows no sign of life for Options.CallTimeout is ended; each progress
// report is a sign of life. Options.CallLimit ends a call whatever it reports. The
// failure names the limit and the last report. Both limits are suspended while
// [invoker.Call.Hold] is in effect, as when a source asks the user. An answer that
// comes too late is dropped and counted.
//
// # Health
//
// [Ensemble.Snapshot] tells a Go program everything about an ensemble, [Roster.Health]
// reports it in a form for others, and [Roster.HealthHandler] serves that over HTTP. None of
// them connects to anything or waits.
//
// Options.Telemetry reports the same to OpenTelemetry, and each attempt to connect as a
// trace of its own. Calls are part of their caller's trace; see package telemetry.
// docs/observability/logs.md describes the log.
//
// # End
//
// The program must close the ensembles or the roster that it makes. [Ensemble.Close]
// ends the calls in flight, and closes the connection, gracefully as long as its context
// and Options.CloseTimeout permit. It returns when nothing is left, or 2 s after the end was
// forced; its error then names the rest, such as a Go function that ignores its
// context, and a later Close waits for it again. [Ensemble.Disconnect] does the same for an ensemble that
// will be used again.
//
// # Sources
//
// A [Source] makes fresh connections. A [Connection] is used once: it lists, serves,
// reports its loss, and closes. Everything else is done by the ensemble: timeouts,
// sharing of attempts, caching, filters, names. The ensemble does not rely on a source
// to return: a source that ignores contexts or panics fails alone and keeps no caller
// waiting. Authors of a source should run the test suite of package ensembletest on it.
package ensemble
