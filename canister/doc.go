// SPDX-License-Identifier: Apache-2.0

// Package canister holds the messages of a conversation and what they carry.
//
// A conversation is a list of canisters. There are six kinds: what a person
// says is a [User] canister, what the model says an [Assistant], the standing
// instruction a [Supervisor], material to consult a [Document]; when the model
// asks for a tool that is an [Invocation], and what the tool answered is a
// [Result]:
//
//	history := []canister.Canister{
//		canister.Supervisor{Content: canister.Texts("Answer in one sentence.")},
//		canister.User{Content: canister.Texts("What should I wear in Oslo?")},
//	}
//
// Both sets, [Canister] and [Content], are closed: the compiler keeps other
// packages from adding kinds, and readers use a type switch whose default
// says what it met. Canisters are plain values. Copying one is cheap, and
// nobody changes one after it has entered a history; whoever wants another
// text makes another canister.
//
// # Identity, order and answers
//
// Each canister has a [Head] with an identity that is unique in its
// conversation and the time at which it came to be. One exchange with a model
// yields one Assistant canister, possibly without any content, followed by
// the Invocations that it asked for; each Invocation names that Assistant in
// its Message field. Each Result names its Invocation, and the Results stand
// behind the last Invocation of the message.
//
// [Check] tells whether a history keeps these rules, [Repair] makes one keep
// them and reports what it did, and [Pending] lists the invocations at the end
// of a history that still wait for a result: a history that was put down in
// the middle of its work is not broken.
//
// # What a model is never told
//
// A conversation that outlives its process has to know more than what was said:
// that a call is about to be made ([Intent]), that something is waited for
// ([Wait]) and what was decided ([Answer]). These stand in the history too, and
// [Messages] leaves them out.
//
// # On disk and on the wire
//
// [Marshal] and [Unmarshal] translate between a canister and its JSON form,
// [Encode] and [Decode] between a history and lines of it. The form is
// documented in docs/canisters.md. It round-trips exactly, keeps members that
// this version does not know, and calls a kind that it does not know an error
// that names the line.
package canister
