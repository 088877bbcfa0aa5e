// SPDX-License-Identifier: Apache-2.0

// Package conversetest helps to test conversations: a scripted model, transcripts, and
// the suite for models.
//
// # A model that plays a script
//
// A [Script] is a model that says what the test wants, one [Line] for each
// exchange, and fails when the conversation departs from it:
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
// A line may look at the request before it answers, stream, break off, and
// stand still until the test lets it go. Like every model API, the script
// refuses a history that is not sound.
//
// # Transcripts
//
// A [Recorder] stands before a conversation, of any model, and writes down what
// happens. The [Transcript] is a txtar file for people to read and for tests to
// compare, with [CompareFile]:
//
//	record := conversetest.Record(talk, roster)
//	for event, err := range record.Send(ctx, canister.Text("Is it cold?")) { ... }
//	got, err := record.Transcript()
//	...
//	conversetest.CompareFile(t, "testdata/cold.txtar", got, *update)
//
// [Transcript.Replay] plays a file again: the model says what it said then, and
// the tools are those of a roster, or fakes that do what they did then. So a
// conversation with a real model and real servers, recorded once, becomes a
// test that needs neither.
//
// A file has the tools that were on offer and, for each turn, what was given
// from outside, the events, and the canisters that entered the history:
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
// Canisters and events have their documented forms, docs/canisters.md and
// docs/events.md, without what differs from run to run:
//
//   - Identities are aliases by kind and place: u2 is the second message of the
//     user, i3 the third invocation, r3 its result, and call3 its CallID. An
//     event names its canister, unless the history has it otherwise.
//   - Times and durations are left out.
//   - Deltas that follow one another are one.
//   - Between two other events, those of calls stand in the order of the calls,
//     because calls run side by side: all of i1, then all of i2.
//   - Lines with an exclamation mark say that the caller cancelled its context
//     or left the loop, and what error the turn ended with.
//
// Texts stay as they are. A caller that leaves or cancels while calls run side
// by side gets the same transcript each time only if it does so when the same
// has happened, and the tools that run on are sure to be interrupted.
//
// # The suite for models
//
// [TestModel] is the suite that every [converse.Model] must pass. The server behind the model is scripted with lines
// too; what else the suite needs is in [Harness]:
//
//	func TestSuite(t *testing.T) {
//		conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
//			server := startServer(t, lines)
//			return conversetest.Harness{Model: mymodel.New(server.URL), Received: server.LastBody}
//		})
//	}
package conversetest
