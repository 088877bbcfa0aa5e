// SPDX-License-Identifier: Apache-2.0

// Package conversetest helps to test conversations: a scripted model, transcripts, and
// the suite for models.
//
// # A model that plays a script
//
// A [Script] is a model that gives the answers of a test, one [Line] per exchange. It
// fails if the conversation departs from the script:
//
//	script := conversetest.NewScript(
//		conversetest.Line{Calls: []conversetest.Call{{Name: "local__weather", Arguments: `{"city":"Oslo"}`}}},
//		conversetest.Line{Text: "Take a warm coat."},
//	)
//	turn, err := converse.New(script, roster, nil).Ask(ctx, canister.Text("What should I wear in Oslo?"))
//	...
//	if err := script.Err(); err != nil {
//		t.Error(err)
//	}
//
// A line can check the request before it answers, stream, break off, and block until the
// test releases it. Like every model API, the script rejects an invalid history.
//
// # Transcripts
//
// A [Recorder] wraps a conversation with any model and records its events. The
// [Transcript] is a txtar file that people can read and that tests compare with
// [CompareFile]:
//
//	record := conversetest.Record(talk, roster)
//	for event, err := range record.Send(ctx, canister.Text("Is it cold?")) { ... }
//	got, err := record.Transcript()
//	...
//	conversetest.CompareFile(t, "testdata/cold.txtar", got, *update)
//
// [Transcript.Replay] replays a file. The model repeats its recorded answers, and the
// tools come from a roster or are fakes that repeat their recorded results. A
// conversation with a real model and real servers, recorded once, becomes a test that
// needs neither.
//
// A file contains the offered tools and, for each turn, the input from outside, the
// events, and the canisters that were added to the history:
//
//	Free text about the conversation.
//
//	-- tools --
//	{"name":"local__weather","ensemble":"local","tool":"weather","read_only":true}
//	-- turn 1/given --
//	{"kind":"user","id":"u1","content":[{"type":"text","text":"Is it cold?"}]}
//	-- turn 1/events --
//	{"event":"turn_started","tools":1}
//	{"event":"message_started"}
//	{"event":"text_delta","text":"No."}
//	{"event":"message_completed","canister":"a1"}
//	...
//	-- turn 1/canisters --
//	{"kind":"assistant","id":"a1","content":[{"type":"text","text":"No."}],"finish":"stop"}
//
// Canisters and events have the forms of docs/canisters.md and docs/events.md, except for
// everything that differs between runs:
//
//   - IDs are aliases by kind and position: u2 is the second message of the user, i3
//     the third invocation, r3 its result, and call3 its CallID. An event refers to
//     its canister by alias, unless the canister in the history differs.
//   - Times and durations are omitted.
//   - Consecutive deltas are joined.
//   - Between two other events, the events of calls are sorted by call, because calls
//     run concurrently: all of i1, then all of i2.
//   - Lines with an exclamation mark record that the caller cancelled its context or
//     left the loop, and the error of the turn.
//
// Texts are not changed. If a caller leaves or cancels while calls run concurrently, the
// transcript is the same each time only if the caller does so after the same events, and
// if the running tools are certain to be interrupted.
//
// # The suite for models
//
// [TestModel] is the suite that every [converse.Model] must pass. Lines also script the
// server behind the model; [Harness] has everything else that the suite needs:
//
//	func TestSuite(t *testing.T) {
//		conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
//			server := startServer(t, lines)
//			return conversetest.Harness{Model: mymodel.New(server.URL), Received: server.LastBody}
//		})
//	}
package conversetest
