// SPDX-License-Identifier: Apache-2.0

// Package faultserver is an MCP server that misbehaves by a script, to test what
// stands before such servers: that a call is made at most once, that a dead
// server comes back, that nothing hangs and nothing is left behind. It is a
// real server, over stdio or streamable HTTP, and stands on the standard
// library alone, so that it shares no mistake with the client under test.
//
// The smallest use is a server over HTTP that dies once, after the effect of a
// call and before its answer:
//
//	server, err := faultserver.StartHTTP(faultserver.Script{
//		Dir:   t.TempDir(),
//		Rules: []faultserver.Rule{{Fault: faultserver.Die, At: faultserver.AfterEffect}},
//	}, &faultserver.Options{ComeBack: time.Second})
//	defer server.Close()
//	// let a client call the tool "effect" at server.URL(), and then
//	ledger, err := faultserver.ReadLedger(dir)
//	len(ledger.Effects()) // must be 1
//
// # Over stdio
//
// A server over stdio is a process, and a test binary can be that process:
//
//	func TestMain(m *testing.M) {
//		if os.Getenv(faultserver.Variable) != "" {
//			os.Exit(faultserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//		}
//		os.Exit(m.Run())
//	}
//
// Whoever starts that binary with the entry [Script.Environ] in its
// environment gets the server. The command faultserverd is [Main] and nothing
// else, for other languages and for trying things out by hand. A process can
// serve HTTP as well, see [Main] and [Launch].
//
// # Scripts
//
// A [Script] is a list of rules. Each [Rule] names a [Fault], the [Place] in the
// life of the server at which it strikes, and at which occasions: the nth that
// matches, and so many in a row. [Faults] lists all faults with what they do,
// which fields of a rule they read, and where they can strike over either
// transport; a rule that could never strike is an error at the start.
//
// Occasions are counted in the order in which requests come. With [Script.Dir]
// the count is on the disk, and goes on when the process is started again: a
// rule that strikes once strikes once, however many processes there are.
// Several rules make longer stories, such as a child left behind at the start
// and a death at the third call.
//
// # What a server offers
//
// Its tools are
//
//   - echo {"text"}: answers with the text. Read-only.
//   - effect {"key", ...}: has an effect, that is one line in the ledger.
//     Neither read-only nor idempotent.
//   - idempotent_effect {"key", ...}: the same, and says that it is idempotent.
//     Each run is in the ledger all the same.
//   - wait {}: reports the progress 1 and waits until it is cancelled. It never
//     answers. Read-only.
//   - progress {"steps"}: reports each step (3), then answers "done". Read-only.
//   - big {"bytes"}: answers with a text of that size. Read-only.
//   - fail {"text"}: fails with the text, as a tool does. Read-only.
//
// and it has one resource, fault://note, with the text "a note".
//
// It speaks MCP 2025-11-25 and older, and answers server/discover of 2026-07-28
// with "method not found", so that clients fall back to initialize. Over HTTP it
// has sessions, answers calls with a stream of events and all else with plain
// JSON, and serves the stream that clients may keep open; it does not resume.
//
// # The ledger
//
// What happened stands in the directory of the script, one line of JSON each,
// written in one piece by all processes with that directory: starts, calls as
// they came, effects, cancellations, faults as they struck, children left
// behind. [ReadLedger] reads it. An effect is on the disk before its call is
// answered. Calls carry the identity of their invocation ([IdempotencyKey])
// and their progress token.
//
// # Nothing is left behind
//
// A process ends by itself after [Script.Life], also when it was told to ignore
// everything else, and so does a child that it left, after its delay. Large
// things are written piece by piece, never held in memory.
package faultserver
