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
// # Catalog, tool, call
//
// A conversation asks its roster for a [Catalog] at the beginning of each turn
// and holds on to it until the end, so that the model sees the same tools all
// the while. What a server adds or withdraws in the meantime is in the next
// one. While nothing changes, [Roster.Catalog] returns the same pointer.
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
// denied, or has the name of another, is in [Catalog.Aside] with its reason, and
// an ensemble that cannot be reached in [Catalog.Away] with its error. Only one
// that is Required makes the catalog fail.
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
// A [Tool] is bound to its ensemble and its own name, not to a connection, and
// so outlives any of them. A call is made at most once: when the connection is
// lost during a call, the failure is OUTCOME_UNKNOWN, and the ensemble does not
// repeat it. A call for which no connection could be had is UNAVAILABLE, and
// certainly was not made.
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
