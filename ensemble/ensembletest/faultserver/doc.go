// SPDX-License-Identifier: Apache-2.0

// Package faultserver is an MCP server that misbehaves according to a script. It tests
// the clients of such servers: that a call is made at most once, that a dead server is
// restarted, that nothing hangs and nothing leaks. It is a real server, over stdio or
// streamable HTTP. It uses no package of the protocol, so that it shares no bugs
// with the client under test.
//
// This starts a server over HTTP that dies once, after the effect of a call and before
// its answer:
//
//	server, err := faultserver.StartHTTP(faultserver.Script{
//		Dir:   t.TempDir(),
//		Rules: []faultserver.Rule{{Fault: "die", At: "after-effect"}},
//	}, &faultserver.Options{ComeBack: time.Second})
//	defer server.Close()
//	// let a client call the tool "effect" at server.URL(), and then
//	ledger, err := faultserver.ReadLedger(dir)
//	len(ledger.Effects()) // must be 1
//
// # Over stdio
//
// A server over stdio is a process. A test binary can be that process:
//
//	func TestMain(m *testing.M) {
//		if os.Getenv(faultserver.Variable) != "" {
//			os.Exit(faultserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//		}
//		os.Exit(m.Run())
//	}
//
// To get the server, start that binary with the entry [Script.Environ] in its
// environment. The command faultserverd just calls [Main]; it is for other languages
// and for manual tests. A process can also serve HTTP, see [Main] and [Launch].
//
// # Scripts
//
// A [Script] is a list of rules. Each [Rule] names a [Fault], the [Place] in the life
// of the server where it strikes, and the occasions: the nth that matches, and how many
// in a row. [Faults] lists all faults with their behavior, the fields of a rule that
// they use, and the places where they can strike over each transport; a rule that could
// never strike is an error at the start.
//
// Occasions are counted in the order of requests. With [Script.Dir], the count is on
// disk and continues when the process is restarted: a rule that strikes once strikes
// once for all processes together. Several rules make up longer scenarios, such as a
// child process left running at the start and a death at the third call.
//
// # What a server offers
//
// Its tools are
//
//   - echo {"text"}: answers with the text. Read-only.
//   - effect {"key", ...}: has an effect, which is one line in the ledger.
//     Neither read-only nor idempotent.
//   - idempotent_effect {"key", ...}: the same, but declared idempotent. Each run
//     is in the ledger all the same.
//   - wait {}: reports the progress 1 and waits until it is cancelled. It never
//     answers. Read-only.
//   - progress {"steps"}: reports each step (3), then answers "done". Read-only.
//   - big {"bytes"}: answers with a text of that size. Read-only.
//   - fail {"text"}: fails with the text, as a tool does. Read-only.
//
// and it has one resource, fault://note, with the text "a note".
//
// The server speaks MCP 2025-11-25 and older, and answers server/discover of 2026-07-28
// with "method not found", so that clients fall back to initialize. Over HTTP it has
// sessions, answers calls with a stream of events and all other requests with plain
// JSON, and serves the stream that clients may keep open; it does not support
// resumption.
//
// # The ledger
//
// The ledger is a file in the directory of the script. It has one line of JSON for each
// event, written atomically by all processes with that directory: starts, calls as they
// arrived, effects, cancellations, faults as they struck, child processes that were
// left running. [ReadLedger] reads it. An effect is on disk before its call is
// answered. Calls carry the ID of their invocation ([IdempotencyKey]) and their
// progress token.
//
// # Cleanup
//
// A process ends by itself after [Script.Life], even if it was told to ignore
// everything else. A child process that it left running ends after its delay. Large
// data is written piece by piece, never held in memory.
package faultserver
