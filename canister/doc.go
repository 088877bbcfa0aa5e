// SPDX-License-Identifier: Apache-2.0

// Package canister defines the messages of a conversation and their content.
//
// A conversation is a list of canisters. There are six kinds of messages: a
// person's message is a [User] canister, the model's an [Assistant], the standing
// instruction a [Supervisor], and reference material a [Document]. A tool call by
// the model is an [Invocation], and the tool's answer a [Result]:
//
//	history := []canister.Canister{
//		canister.Supervisor{Content: canister.Texts("Answer in one sentence.")},
//		canister.User{Content: canister.Texts("What should I wear in Oslo?")},
//	}
//
// Both sets, [Canister] and [Content], are closed: other packages cannot add
// types, and readers use a type switch whose default case reports the unexpected
// type. Canisters are plain values and cheap to copy. A canister must not be
// changed once it is in a history; to get another text, make another canister.
//
// # Identity, order and answers
//
// Each canister has a [Head] with an ID that is unique in its conversation and
// the time of its creation. One exchange with a model yields one Assistant
// canister, possibly without content, followed by the Invocations that it asks
// for; each Invocation names that Assistant in its Message field. Each Result
// names its Invocation, and the Results follow the last Invocation of the
// message.
//
// Package sequence checks whether a history follows these rules, and repairs one that
// does not. [Pending] lists the invocations at the end of a history that still wait for
// a result: a history that was interrupted during calls is not broken.
//
// # Canisters that the model never sees
//
// A conversation that outlives its process has to record more than its messages:
// that a call is about to be made ([Intent]), that the conversation waits for
// something ([Wait]), and the decision that ends the wait ([Answer]). These are
// in the history too, and [Messages] leaves them out. So are the calls that a call makes,
// and left out as well: an [Invocation] with a Parent, and its [Result].
//
// # On disk and on the wire
//
// [Marshal] and [Unmarshal] convert between a canister and its JSON form,
// [Encode] and [Decode] between a history and lines of JSON. The form is
// documented in docs/canisters.md. It round-trips exactly and keeps members that
// this version does not know. An unknown kind is an error; from Decode, the error
// names the line.
package canister
