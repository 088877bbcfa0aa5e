// SPDX-License-Identifier: Apache-2.0

// Package openaiserver is an OpenAI-compatible Chat Completions server that
// answers from a script. Tests, benchmarks and the demonstration talk to it
// over real sockets, with the same client code that talks to a real model. It
// stands on net/http alone.
//
// The smallest use is one answer:
//
//	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
//		{Reply: openaiserver.Message{Text: "Hello."}},
//	}}, nil)
//	defer server.Close()
//	// point a client at server.URL()
//
// # Scripts
//
// A [Script] is a list of steps, and a request says itself which step it is
// at: the number of assistant messages in its history. The server therefore
// keeps nothing about a conversation, and one script serves thousands of them
// at the same time. [Script.Repeat] starts over after the last step, for
// conversations of any length.
//
// A [Step] may state what it expects of the request ([Expect]). A request that
// departs from it, or comes after the last step, is answered with status 400
// and what was expected, and is kept for [Server.Faults], so that a test can
// ask at its end whether all went by the script.
//
// A step answers with a [Reply]: a [Message] (text, reasoning, refusal, tool
// calls), a [Failure] (see [RateLimited], [ServerError], [Unauthorized] and
// [ContextLength]), a [Replay] of recorded bytes, or what a [Respond] function
// makes of the request. Replies that only the first requests shall get, such as
// a 500 that a retry overcomes, stand in [Step.Before].
//
// # Requests
//
// Each request is checked as OpenAI checks it, and refused with an error object
// of the same shape: histories in which a tool call has no answer or two, tool
// names and schemas that no model may be given, malformed response formats, and
// so on. This is what makes a green test mean something. [Options.Trust] turns
// the checks off for benchmarks. [Server.Requests] returns the latest requests
// as they came.
//
// # Replays and oddities
//
// A [Replay] sends bytes exactly as given and decides where writes end, where
// pauses fall, and whether the connection ends well, is cut, is reset, or
// stalls. [Oddities] are such streams for each departure from the protocol that
// servers in the world have been seen to make, reduced to that departure, each
// with what a correct client makes of it. The server offers every one under its
// own base URL, see [OddityURL].
//
// # As a process
//
// The command openaiserverd is [Main] and nothing else: it reads a script from
// a JSON file ([ParseScript] documents the form), prints its base URL on
// standard output, and leaves when standard input ends. [Launch] starts it, or
// a test binary that calls Main, and waits for it at the end.
package openaiserver
